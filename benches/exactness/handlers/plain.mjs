// Plain `ADD` and `SET` in Node: an update for each change, and an error fails the whole batch.
// `node plain.mjs` is also the runtime, as far as the handler needs it.
import { createRequire } from "node:module";

const { DynamoDBClient, GetItemCommand, UpdateItemCommand, paginateQuery } = createRequire(process.env.NODE_ROOT)(
  "@aws-sdk/client-dynamodb",
);
const client = new DynamoDBClient({});
const TableName = process.env.TABLE_NAME;

const setName = (comment, name) => ({
  TableName,
  Key: { pk: comment.pk, sk: comment.sk },
  UpdateExpression: "SET userName = :name",
  ExpressionAttributeValues: { ":name": name },
});

async function updates({ eventName, dynamodb: { Keys, NewImage, OldImage } }) {
  const item = NewImage ?? OldImage;
  if (item.type.S === "Like" && eventName !== "MODIFY") {
    return [{
      TableName,
      Key: { pk: { S: Keys.sk.S.replace("LIKE#", "POST#") }, sk: { S: "POST" } },
      UpdateExpression: "ADD likeCount :n",
      ExpressionAttributeValues: { ":n": { N: eventName === "INSERT" ? "1" : "-1" } },
    }];
  }
  if (item.type.S === "Comment" && eventName === "INSERT") {
    const Key = { pk: item.gsi1pk, sk: { S: "PROFILE" } };
    const { Item } = await client.send(new GetItemCommand({ TableName, Key, ConsistentRead: true }));
    return Item ? [setName(item, Item.userName)] : [];
  }
  if (item.type.S === "User" && eventName === "MODIFY" && NewImage.userName.S !== OldImage.userName.S) {
    const found = [];
    const query = {
      TableName,
      IndexName: "byUser",
      KeyConditionExpression: "gsi1pk = :user",
      ExpressionAttributeValues: { ":user": item.pk },
    };
    for await (const page of paginateQuery({ client }, query)) {
      found.push(...page.Items.map((comment) => setName(comment, NewImage.userName)));
    }
    return found;
  }
  return [];
}

export async function handler(event) {
  for (const record of event.Records) {
    for (const update of await updates(record)) await client.send(new UpdateItemCommand(update));
  }
}

const api = `http://${process.env.AWS_LAMBDA_RUNTIME_API}/2018-06-01/runtime/invocation`;
for (;;) {
  const next = await fetch(`${api}/next`);
  const id = next.headers.get("Lambda-Runtime-Aws-Request-Id");
  let way = "response";
  let answer = null;
  try {
    await handler(await next.json());
  } catch (error) {
    [way, answer] = ["error", { errorType: error.name, errorMessage: error.message }];
  }
  await fetch(`${api}/${id}/${way}`, { method: "POST", body: JSON.stringify(answer) });
}
