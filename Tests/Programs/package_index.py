#!/usr/bin/env python3
"""pypiserver, to who has a token that the provider's userinfo endpoint takes as the password. Prints its port, then a line
for each request that was refused or served.

    package_index.py DIRECTORY USERINFO-URL"""

import sys
import urllib.error
import urllib.request
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

import pypiserver

DIRECTORY, USERINFO = sys.argv[1:3]


def is_good(_, token):
    request = urllib.request.Request(USERINFO, headers={"Authorization": "Bearer " + token})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status == 200
    except urllib.error.HTTPError:
        return False


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Handler(WSGIRequestHandler):
    def log_message(self, form, *words):
        print(form % words, flush=True)


application = pypiserver.app(
    roots=[DIRECTORY], authenticate=["list", "download", "update"], auther=is_good, password_file=".", disable_fallback=True)
server = make_server("127.0.0.1", 0, application, server_class=Server, handler_class=Handler)
print(server.server_port, flush=True)
server.serve_forever()
