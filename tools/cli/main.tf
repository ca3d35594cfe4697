ripple
infra
--attach
--format
terraform
