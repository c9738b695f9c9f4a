"""Libraries of Google, AWS and Azure get their tokens from Ringback. Part of tools_packages.py, which runs it."""

import json
import os
import re
import subprocess

from house import stop, until

GOOGLE = """
import json, sys
from google.auth import pluggable
from google.auth.transport.requests import Request
made = pluggable.Credentials.from_info(json.load(open(sys.argv[1])))
made.refresh(Request())
print(made.token)
"""
AWS = """
import boto3
print(boto3.client("sts", region_name="us-east-1").get_caller_identity()["Arn"])
"""
AZURE = """
import sys
from azure.identity import WorkloadIdentityCredential
made = WorkloadIdentityCredential(disable_instance_discovery=True, authority=sys.argv[1])
print(made.get_token("https://a.example.org/.default").token)
"""
ROLE = "arn:aws:iam::123456789012:role/work"


class Clouds:
    """The token services, and the libraries that exchange a token there."""

    def __init__(self, packages):
        self.packages, self.tools, self.house = packages, packages.tools, packages.house
        self.rows = self.tools.rows
        self.attempts = [self.try_google, self.try_aws, self.try_azure]
        self.log = open(self.house.place("moto.log"), "wb")
        self.moto = subprocess.Popen(
            [packages.program("moto_server"), "-p", "0", "-H", "127.0.0.1"], stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log, env=self.tools.environment)
        self.place = until("moto says its port", self.look, 60)

    def look(self):
        with open(self.log.name) as file:
            found = re.search(r"Running on (http://127\.0\.0\.1:\d+)", file.read())
        return found and found[1]

    def close(self):
        stop(self.moto)
        self.log.close()

    def exchanged(self, path):
        """True if the token service got the ID token of the account."""
        with open(self.packages.token_file) as file:
            return f"{path} 200 {file.read()}" in self.packages.registry.text

    def try_google(self):
        place, program = f"https://127.0.0.1:{self.packages.registry.port}", os.path.join(self.house.binaries, "ringback")
        path = self.packages.write("google.json", json.dumps({
            "type": "external_account", "audience": "//iam.googleapis.com/a",
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token", "token_url": place + "/sts/v1/token",
            "credential_source": {"executable": {
                "command": f"{program} google-credential --account work", "timeout_millis": 30_000}}}))
        status, said = self.packages.python("google", GOOGLE, path, GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES="1")
        self.packages.note(status == 0 and "exchanged" in said and self.exchanged("/sts/v1/token"),
                  "google-auth exchanges the ID token", said)
        self.rows.append(["google-auth", self.packages.version("google-auth")])

    def try_aws(self):
        """moto takes any token; what is shown is that boto3 reads the kept file and sends it."""
        status, said = self.packages.python(
            "aws", AWS, AWS_WEB_IDENTITY_TOKEN_FILE=self.packages.token_file, AWS_ENDPOINT_URL=self.place,
            AWS_ROLE_ARN=ROLE, AWS_ROLE_SESSION_NAME="ada")
        self.packages.note(status == 0 and "assumed-role/work/ada" in said, "boto3 assumes a role with the kept file", said)
        self.rows.append(["boto3", self.packages.version("boto3")])

    def try_azure(self):
        status, said = self.packages.python(
            "azure", AZURE, f"https://127.0.0.1:{self.packages.registry.port}", AZURE_FEDERATED_TOKEN_FILE=self.packages.token_file,
            AZURE_CLIENT_ID="client", AZURE_TENANT_ID="tenant")
        self.packages.note(status == 0 and "exchanged" in said and self.exchanged("/tenant/oauth2/v2.0/token"),
                  "azure-identity exchanges the kept file", said)
        self.rows.append(["azure-identity", self.packages.version("azure-identity")])
