"""Lambda's runtime for Python, as far as a handler needs it: `python run.py MODULE`."""

import importlib
import json
import os
import sys
import time
import urllib.request

API = f"http://{os.environ['AWS_LAMBDA_RUNTIME_API']}/2018-06-01/runtime/invocation"


class Context:
    function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
    function_version = "$LATEST"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:us-east-1:000000000000:function:handler"

    def __init__(self, headers):
        self.aws_request_id = headers["Lambda-Runtime-Aws-Request-Id"]
        self.deadline_ms = int(headers["Lambda-Runtime-Deadline-Ms"])

    def get_remaining_time_in_millis(self):
        return max(0, self.deadline_ms - int(time.time() * 1000))


def main():
    handler = importlib.import_module(sys.argv[1]).lambda_handler
    while True:
        with urllib.request.urlopen(f"{API}/next") as response:
            event, context = json.load(response), Context(response.headers)
        try:
            way, answer = "response", handler(event, context)
        except Exception as error:
            way, answer = "error", {"errorType": type(error).__name__, "errorMessage": str(error)}
        request = urllib.request.Request(f"{API}/{context.aws_request_id}/{way}", json.dumps(answer).encode())
        urllib.request.urlopen(request).close()


if __name__ == "__main__":
    main()
