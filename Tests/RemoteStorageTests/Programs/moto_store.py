"""Starts moto with signatures and policies checked, and prints its port and the keys of two users: one
who may do everything and one who may only read. Ends when its standard input ends.

The first requests are free, and make the users.
"""

import json
import logging
import os
import sys

# A policy for all, a policy for reading, and two users with their keys.
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "6"

import boto3
from moto.server import ThreadedMotoServer


def user(iam, name, actions):
    """Makes a user with a policy, and returns the keys."""
    iam.create_user(UserName=name)
    rules = [{"Effect": "Allow", "Action": actions, "Resource": "*"}]
    policy = json.dumps({"Version": "2012-10-17", "Statement": rules})
    iam.put_user_policy(UserName=name, PolicyName=name, PolicyDocument=policy)
    made = iam.create_access_key(UserName=name)["AccessKey"]
    return [made["AccessKeyId"], made["SecretAccessKey"]]


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    iam = boto3.client(
        "iam", endpoint_url=f"http://{host}:{port}", region_name="us-east-1",
        aws_access_key_id="none", aws_secret_access_key="none")
    keys = user(iam, "all", ["s3:*"]) + user(iam, "reader", ["s3:Get*", "s3:List*"])
    print(json.dumps([str(port)] + keys), flush=True)
    sys.stdin.read()
    os._exit(0)


main()
