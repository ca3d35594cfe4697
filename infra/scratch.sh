#!/usr/bin/env bash
# A day in a scratch account: infra/scratch.md says what each step would prove.
#
#   infra/scratch.sh [--dry-run] ACCOUNT REGION [STEP...]
#
# Steps, in their order: deploy, load, denied, disabled, killed, given-up, low-latency, new-stream, keep, remove. Without a
# step it does all but `remove`. `--dry-run` prints the commands and calls nothing. It stops at the first command that
# fails, after it has undone the fault that the step caused; each step can be run again alone. Needs: the aws and sam command lines, what docs/deploy.md needs to build, and credentials of ACCOUNT.
set -euo pipefail
cd "$(dirname "$0")/.."

stack='ripple-scratch'
fixtures=target/scratch
dry=false
[[ ${1:-} != --dry-run ]] || { dry=true && shift; }
[[ $# -ge 2 ]] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2 && exit 2; }
account=$1 region=$2
shift 2
export AWS_DEFAULT_REGION=$region AWS_REGION=$region AWS_PAGER=
read -ra ripple <<<"${RIPPLE:-cargo run --locked --release --quiet --}"

say() { printf '\n== %s\n' "$*"; }
# Prints a command, and runs it.
run() {
  printf '+ %s\n' "${*@Q}"
  $dry || "$@"
}
# The output of a command that only reads; its last word stands for it in a dry run.
ask() { if $dry; then echo "<${*: -1}>"; else "$@"; fi; }

# The name of a resource of the stack.
resource() {
  if $dry; then echo "<$1>" && return; fi
  aws cloudformation list-stack-resources --stack-name "$stack" --output text \
    --query "StackResourceSummaries[?LogicalResourceId=='$1'].PhysicalResourceId | [0]"
}
stream() {
  ask aws dynamodb describe-table --table-name "$table" --output text --query Table.LatestStreamArn
}
# Sets the names that the steps use. A command that fails in an assignment ends the script.
names() {
  table=$(resource Table)
  ledger=$(resource LedgerTable)
  function=$(resource Combined)
  role=$(resource CombinedRole)
  bucket=$(resource FailedBatches)
  mapping=$(resource CombinedStream)
  options=(--aws --region "$region" --table "$table" --ledger-table "$ledger")
}

# The users from one number up to another follow Ada, 25 in a call.
follows() {
  local at request
  for ((at = $1; at < $2; at += 25)); do
    request=$(python3 - "$table" "$at" "$(($2 < at + 25 ? $2 : at + 25))" <<'PY'
import json, sys
table, start, end = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
item = lambda at: {"PK": {"S": f"USER#u{at}"}, "SK": {"S": "FOLLOWS#ada"}, "EntityType": {"S": "Follow"}}
print(json.dumps({table: [{"PutRequest": {"Item": item(at)}} for at in range(start, end)]}))
PY
    )
    if $dry; then request="<25 follows from u$at>"; fi
    run aws dynamodb batch-write-item --request-items "$request"
  done
}

# Waits until an alarm rings, at most so many minutes.
rings() {
  local minutes=$2 alarm state
  alarm=$(resource "$1")
  echo "waiting until $1 rings, at most $minutes minutes"
  $dry && return
  for (( ; minutes > 0; minutes--)); do
    state=$(aws cloudwatch describe-alarms --alarm-names "$alarm" --output text \
      --query 'MetricAlarms[0].StateValue')
    [[ $state != ALARM ]] || { echo "$1 rings" && return; }
    sleep 60
  done
  echo "$1 did not ring" && return 1
}

# So many days ago.
day() { python3 -c 'import sys, time; print(time.strftime("%FT%TZ", time.gmtime(time.time() - 86400 * int(sys.argv[1]))))' "$1"; }

pause() {
  echo "waiting for $1 minutes: $2"
  $dry || sleep $(($1 * 60))
}

# Every derived value is right, and nothing is parked.
right() {
  run "${ripple[@]}" verify "${options[@]}" --iterator-age 60
  run "${ripple[@]}" parked "${options[@]}"
}

# What undoes the faults of the running step, the last one first, also if a command of it fails.
faults=()
# Runs the command that causes a fault; the words after `--` undo it.
cause() {
  local words=()
  while [[ $1 != -- ]]; do words+=("$1") && shift; done
  shift
  faults=("$(printf '%q ' run "$@")" "${faults[@]}")
  run "${words[@]}"
}
undo() {
  local fault
  for fault in "${faults[@]}"; do eval "$fault" || echo "could not undo: $fault" >&2; done
  faults=()
}
trap undo EXIT

deny() {
  cause aws iam put-role-policy --role-name "$role" --policy-name scratch --policy-document \
    '{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"dynamodb:UpdateItem","Resource":"*"}]}' \
    -- aws iam delete-role-policy --role-name "$role" --policy-name scratch
}

deploy() {
  run sam build --template infra/template.yaml
  # One reader, so that the recorder can be the second; no protection, so that `remove` can remove.
  run sam deploy --stack-name "$stack" --resolve-s3 --capabilities CAPABILITY_IAM --no-confirm-changeset \
    --no-fail-on-empty-changeset --parameter-overrides Readers=one DeletionProtection=false \
    'SweepScheduleExpression="rate(5 minutes)"' SystemLogLevel=INFO "$@"
  names
  run aws cloudformation deploy --stack-name "$stack-recorder" --template-file infra/scratch.yaml \
    --capabilities CAPABILITY_IAM --no-fail-on-empty-changeset --parameter-overrides "StreamArn=$(stream)"
}

load() {
  run aws dynamodb put-item --table-name "$table" \
    --item '{"PK":{"S":"USER#ada"},"SK":{"S":"PROFILE"},"EntityType":{"S":"User"},"Name":{"S":"Ada"}}'
  follows 0 1000
  pause 3 'the last tumbling window ends'
  right
}

denied() {
  deny
  follows 1000 1200
  rings CombinedErrorsAlarm 30
  undo
  pause 10 'the mapping tries again'
  right
}

disabled() {
  cause aws lambda update-event-source-mapping --no-enabled --uuid "$mapping" \
    -- aws lambda update-event-source-mapping --enabled --uuid "$mapping"
  pause 2 'the mapping stops'
  follows 1200 1225
  pause 15 'the next quarter of an hour'
  follows 1225 1250
  rings CombinedNotReadingAlarm 60
  undo
  pause 10 'the mapping goes on'
  right
}

killed() {
  cause aws lambda update-function-configuration --function-name "$function" --timeout 1 --memory-size 128 \
    -- aws lambda update-function-configuration --function-name "$function" --timeout 60 --memory-size 512
  follows 1250 3250
  pause 10 'Lambda ends invocations, and delivers their batches again'
  undo
  pause 10 'the function catches up'
  right
}

given_up() {
  cause aws lambda update-event-source-mapping --uuid "$mapping" --maximum-record-age-in-seconds 60 \
    -- aws lambda update-event-source-mapping --uuid "$mapping" --maximum-record-age-in-seconds -1
  deny
  follows 3250 3275
  rings CombinedDroppedAlarm 60
  undo
  pause 5 'the mapping changes'
  run aws s3 sync "s3://$bucket" "$fixtures/failed-batches"
  run "${ripple[@]}" repair "${options[@]}" --iterator-age 60 --apply --yes
  right
}

low_latency() {
  deploy LatencyTarget=low
  follows 3300 3400
  pause 3 'the last tumbling window ends'
  right
  deploy LatencyTarget=none
}

new_stream() {
  local specification='StreamEnabled=true,StreamViewType=NEW_AND_OLD_IMAGES'
  run aws dynamodb update-table --table-name "$table" --stream-specification StreamEnabled=false
  run aws dynamodb wait table-exists --table-name "$table"
  run aws dynamodb update-table --table-name "$table" --stream-specification "$specification"
  follows 3275 3300
  rings StreamChangedAlarm 30
  # Does a deployment take the new ARN? CloudFormation may not notice what it did not change itself.
  deploy LogRetentionDays=14
  run aws lambda list-event-source-mappings --function-name "$function" --output text \
    --query 'EventSourceMappings[].EventSourceArn'
  echo "the table's stream is $(stream)"
  # It does in any case with the ARN as a parameter.
  deploy "TableStream=$(stream)"
  run "${ripple[@]}" repair "${options[@]}" --iterator-age 60 --apply --yes
  right
}

keep() {
  local events saved words
  mkdir -p "$fixtures"
  events=$(ask aws cloudformation describe-stacks --stack-name "$stack-recorder" --output text \
    --query 'Stacks[0].Outputs[0].OutputValue')
  run aws s3 sync "s3://$events" "$fixtures/events"
  run aws s3 sync "s3://$bucket" "$fixtures/failed-batches"
  for saved in \
    "shards.json dynamodbstreams describe-stream --stream-arn $(stream)" \
    "mapping.json lambda list-event-source-mappings --function-name $function" \
    "stack.json cloudformation describe-stack-events --stack-name $stack" \
    "disorder.json cloudwatch get-metric-statistics --namespace Ripple --metric-name OutOfOrder --period 86400 \
      --statistics Sum --dimensions Name=Table,Value=$table Name=Function,Value=combined \
      --start-time $(day 1) --end-time $(day 0)" \
    "alarms.json cloudwatch describe-alarm-history --history-item-type StateUpdate" \
    "log.json logs filter-log-events --log-group-name $(resource CombinedLogs)" \
    "sweep-log.json logs filter-log-events --log-group-name $(resource SweepLogs)"; do
    read -ra words <<<"$saved"
    printf '+ aws %s > %s\n' "${words[*]:1}" "$fixtures/${words[0]}"
    $dry || aws "${words[@]:1}" --output json >"$fixtures/${words[0]}"
  done
}

remove() {
  local events
  events=$(ask aws cloudformation describe-stacks --stack-name "$stack-recorder" --output text \
    --query 'Stacks[0].Outputs[0].OutputValue')
  run aws s3 rm "s3://$events" --recursive
  run aws cloudformation delete-stack --stack-name "$stack-recorder"
  run sam delete --stack-name "$stack" --no-prompts
  # The stack keeps these.
  run aws dynamodb delete-table --table-name "$table"
  run aws dynamodb delete-table --table-name "$ledger"
  run aws s3 rb "s3://$bucket" --force
}

[[ $(ask aws sts get-caller-identity --query Account --output "text") == "$account" ]] || $dry ||
  { echo "the credentials are not of the account $account" >&2 && exit 1; }
[[ $# -gt 0 ]] || set -- deploy load denied disabled killed given-up low-latency new-stream keep
for step in "$@"; do
  case $step in
    deploy | load | denied | disabled | killed | given-up | low-latency | new-stream | keep | remove) ;;
    *) echo "there is no step $step" >&2 && exit 2 ;;
  esac
done
for step in "$@"; do
  say "$step"
  [[ $step == deploy ]] || names
  "${step//-/_}"
done
