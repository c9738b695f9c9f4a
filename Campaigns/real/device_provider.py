"""django-oauth-toolkit as a provider: a whole Django project in one file, as its documentation sets one up.

Its own pages take the code and ask the person; nothing of the device grant is written here. Run as a program it serves.
"""

import os
import sys

PERSON, PASSWORD, EMAIL = "mira", "correct horse battery", "mira@example.org"
CLIENT = "ringback-device"


def configure(directory, port):
    """The settings that a site has to make itself."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa
    from django.conf import settings

    key = rsa.generate_private_key(65537, 2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode()
    address = f"http://127.0.0.1:{port}/o/device/"
    settings.configure(
        SECRET_KEY=os.urandom(32).hex(), ALLOWED_HOSTS=["127.0.0.1"], ROOT_URLCONF="device_provider", DEBUG=False, DEBUG_PROPAGATE_EXCEPTIONS=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", LOGIN_URL="/login/", USE_TZ=True,
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.path.join(directory, "db.sqlite3")}},
        INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions",
                        "django.contrib.messages", "oauth2_provider"],
        MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware",
                    "django.middleware.csrf.CsrfViewMiddleware",
                    "django.contrib.auth.middleware.AuthenticationMiddleware"],
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
                    "DIRS": [directory], "OPTIONS": {"context_processors": [
                        "django.template.context_processors.request", "django.contrib.auth.context_processors.auth"]}}],
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True, "OIDC_RSA_PRIVATE_KEY": key, "DEVICE_FLOW_INTERVAL": 5,
            "OAUTH_DEVICE_VERIFICATION_URI": address,
            "OAUTH_DEVICE_VERIFICATION_URI_COMPLETE": lambda code: f"{address}?user_code={code}",
            "SCOPES": {"openid": "who you are", "read": "what you have"},
        },
    )


def urls():
    from django.contrib.auth.views import LoginView
    from django.urls import include, path

    return [path("login/", LoginView.as_view(template_name="login.html")),
            path("o/", include("oauth2_provider.urls", namespace="oauth2_provider"))]


def populate(directory):
    """The person, and a public client that may ask for codes."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from oauth2_provider.models import get_application_model

    with open(os.path.join(directory, "login.html"), "w") as file:
        file.write('<form method="post">{% csrf_token %}{{ form.as_p }}<button type="submit">In</button></form>')
    call_command("migrate", verbosity=0)
    get_user_model().objects.create_user(PERSON, EMAIL, PASSWORD)
    get_application_model().objects.create(
        client_id=CLIENT, name="Ringback", client_type="public", algorithm="RS256",
        authorization_grant_type="urn:ietf:params:oauth:grant-type:device_code")


def main(directory, port):
    # Its address is http on loopback, which its library takes for a mistake.
    os.environ["OAUTHLIB_INSECURE_TRANSPORT"] = "1"
    import django
    from wsgiref.simple_server import WSGIServer, make_server

    configure(directory, port)
    django.setup()
    populate(directory)
    globals()["urlpatterns"] = urls()
    from django.core.wsgi import get_wsgi_application

    # The project is this file, under the name that the settings have for it.
    sys.modules["device_provider"] = sys.modules["__main__"]
    WSGIServer.request_queue_size = 64
    server = make_server("127.0.0.1", port, get_wsgi_application())
    print("ready", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
