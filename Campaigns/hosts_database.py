"""The database of many hosts: real PostgreSQL with TLS in a private directory, its standby, and pgbouncer before it."""

import contextlib
import glob
import os
import re
import shutil
import signal
import subprocess

from harness import Trouble, children, output, read, run, stop, until, write
from project import PostgreSQL

DATABASE = "vault"
PRIMARY, STANDBY, POOLER = "10.77.0.1", "10.77.0.2", "10.77.0.3"
ADDRESSES = [PRIMARY, STANDBY, POOLER]
PORT = 5432
# A row that is put back by `ringback.restore`, and was not there or older.
PUT_BACKS = """
create table put_backs (at timestamptz default clock_timestamp());
create function note_put_back() returns trigger language plpgsql security definer set search_path = public as $$
declare
    context text;
begin
    get diagnostics context = pg_context;
    if context like '%ringback.restore(%' then insert into put_backs default values; end if;
    return null;
end $$;
create trigger note_put_back after insert or update of sealed on ringback.rows for each row execute function note_put_back();
"""


def is_possible():
    """"" or what is missing."""
    if not glob.glob("/usr/lib/postgresql/*/bin/initdb"):
        return "there is no PostgreSQL"
    if not shutil.which("openssl"):
        return "there is no openssl"
    return ""


def pooler():
    return shutil.which("pgbouncer") or (os.path.exists("/usr/sbin/pgbouncer") and "/usr/sbin/pgbouncer") or None


class Database(PostgreSQL):
    """A server in the hub. Root reaches it by its Unix socket, hosts by TLS with the password of their role."""

    def __init__(self, hub):
        super().__init__("postgres")
        self.hub = hub
        # Its own user's, and the hosts', which read the authority's certificate.
        os.chmod(self.directory, 0o755)
        self.servers = {}
        self.pooler = None
        try:
            self.make()
        except BaseException:
            self.close()
            raise

    def make(self):
        self.certificates()
        self.make_data(self.place(PRIMARY), "--auth=reject")
        # The pooler knows the roles' keys once they have logged in to it; itself it comes by the Unix socket.
        write(os.path.join(self.place(PRIMARY), "pg_hba.conf"), (
            "local all postgres,pooler trust\nlocal replication postgres trust\nlocal all +ringback_hosts scram-sha-256\n"
            "local all all reject\nhostssl all all 10.77.0.0/24 scram-sha-256\n"), 0o644)
        self.start(PRIMARY)
        self.sql(f"create database {DATABASE}", database="postgres")

    def certificates(self):
        names = ",".join(f"IP:{address}" for address in ADDRESSES)
        script = (
            "umask 077; openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.pem"
            f" && openssl req -newkey rsa:2048 -nodes -subj /CN={PRIMARY} -keyout server.key -out server.csr"
            f" && printf 'subjectAltName={names}' >names"
            " && openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names"
            " -out server.pem"
            " && chmod 644 ca.pem")
        self.run([*self.user, "sh", "-c", script])

    @property
    def authority(self):
        return os.path.join(self.directory, "ca.pem")

    def place(self, address):
        return os.path.join(self.directory, f"data-{address}")

    def socket(self, address):
        """The directory of a server's Unix socket."""
        return os.path.join(self.directory, f"run-{address}")

    def start(self, address=PRIMARY):
        os.makedirs(self.socket(address), exist_ok=True)
        shutil.copystat(self.directory, self.socket(address))
        os.chown(self.socket(address), os.stat(self.directory).st_uid, os.stat(self.directory).st_gid)
        settings = [*self.settings(address), "shared_buffers=32MB", "max_connections=300", "wal_keep_size=64MB"]
        self.servers[address] = self.launch(self.place(address), self.socket(address), settings, self.hub.prefix)

    def settings(self, address):
        return [f"listen_addresses={address}", "ssl=on", f"ssl_cert_file={self.directory}/server.pem",
                f"ssl_key_file={self.directory}/server.key"]

    def log_statements(self, address=PRIMARY):
        """Each statement is in its log from now on, with its parameters."""
        self.sql("alter system set log_statement = 'all'", address=address)
        self.sql("select pg_reload_conf()", address=address)
        until("the server to log statements", lambda: self.sql("show log_statement", address=address) == "all")

    def processes(self, address=PRIMARY):
        first = self.servers[address].pid
        return [first, *children(first)]

    def signal(self, number, address=PRIMARY):
        """To every process of a server. The first one is stopped meanwhile, so that it starts no other."""
        os.kill(self.servers[address].pid, signal.SIGSTOP)
        for process in self.processes(address):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)

    def kill(self, address=PRIMARY):
        self.signal(signal.SIGKILL, address)
        self.servers.pop(address).wait()

    def sql(self, text, database=DATABASE, address=PRIMARY):
        """What a superuser reads or changes."""
        return output(self.program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", self.socket(address), "-U", "postgres",
                      "-d", database, env=self.environment, input=text, timeout=120).strip()

    def end_leases(self, address=PRIMARY):
        """As if a lease's minute had gone by."""
        self.sql("update ringback.rows set lease_until = clock_timestamp() where lease_until is not null", address=address)

    def search(self, texts, address=PRIMARY):
        """In which of the server's files each of these texts (or patterns of bytes) is, and how many bytes were searched."""
        self.sql("checkpoint", address=address)
        found, size = {text: [] for text in texts}, 0
        paths = [os.path.join(place, name) for place, _, names in os.walk(self.place(address)) for name in names]
        for path in [*paths, os.path.join(self.directory, "log")]:
            try:
                with open(path, "rb") as file:
                    content = file.read()
            except FileNotFoundError:
                continue
            size += len(content)
            for text in texts:
                if text.search(content) if isinstance(text, re.Pattern) else text.encode() in content:
                    found[text].append(os.path.basename(path))
        return found, size

    def administrator(self, address=PRIMARY):
        return f"postgresql://postgres@{self.socket(address).replace('/', '%2F')}/{DATABASE}"

    def url(self, *places):
        """As hosts reach it; the role is put in by `ringback vault init`. On loopback there is no TLS."""
        if all(place.startswith("127.") for place in places):
            return f"postgresql://any@{','.join(places)}/{DATABASE}"
        return f"postgresql://any@{','.join(places)}/{DATABASE}?sslrootcert={self.authority}"

    def start_standby(self, address=STANDBY, of=PRIMARY):
        """A copy that follows; what it does not have yet when the other one ends is lost. A former one is replaced."""
        shutil.rmtree(self.place(address), ignore_errors=True)
        self.tool("pg_basebackup", "-D", self.place(address), "-h", self.socket(of), "-U", "postgres", "-R", "-X", "stream",
                  "-c", "fast")
        self.start(address)
        until("the standby", lambda: self.sql(
            "select count(*) from pg_stat_replication where state = 'streaming'", address=of) == "1", 30)

    def require_standby(self, is_required=True, of=PRIMARY):
        """Whether commits wait for a standby from now on. The copy takes this over with everything else."""
        self.sql(f"alter system set synchronous_standby_names = '{'*' if is_required else ''}'", address=of)
        self.sql("select pg_reload_conf()", address=of)
        if is_required:
            until("the standby to be synchronous", lambda: self.sql(
                "select count(*) from pg_stat_replication where sync_state = 'sync'", address=of) == "1", 30)

    def has_caught_up(self):
        return self.sql("select count(*) from pg_stat_replication where replay_lsn = pg_current_wal_lsn()") == "1"

    def hold_standby(self):
        """It is sent nothing from now on."""
        lines = run("ps", "-o", "pid=,args=", "--ppid", str(self.servers[PRIMARY].pid)).stdout.splitlines()
        senders = [int(line.split()[0]) for line in lines if "walsender" in line]
        if len(senders) != 1:
            raise Trouble(f"the primary has {len(senders)} senders")
        os.kill(senders[0], signal.SIGSTOP)

    def promote(self, address=STANDBY):
        self.tool("pg_ctl", "promote", "-w", "-D", self.place(address))

    def watch_put_backs(self):
        """Notes each row that a host puts back from now on."""
        self.sql(PUT_BACKS)

    def put_backs(self, address):
        return int(self.sql("select count(*) from put_backs", address=address))

    def start_pooler(self):
        """pgbouncer in transaction mode. The roles' verifiers come from the server, and are what it logs in with there."""
        directory = os.path.join(self.directory, "pooler")
        os.mkdir(directory, 0o755)
        os.chown(directory, os.stat(self.directory).st_uid, os.stat(self.directory).st_gid)
        self.sql("create role pooler login superuser")
        settings = write(os.path.join(directory, "pgbouncer.ini"), (
            f"[databases]\n{DATABASE} = host={self.socket(PRIMARY)} dbname={DATABASE} auth_user=pooler\n"
            f"[pgbouncer]\npool_mode = transaction\nlisten_addr = {POOLER}\nlisten_port = {PORT}\n"
            f"unix_socket_dir = {directory}\nauth_type = scram-sha-256\n"
            "auth_query = select rolname, rolpassword from pg_authid where rolname = $1\n"
            f"client_tls_sslmode = require\nclient_tls_cert_file = {self.directory}/server.pem\n"
            f"client_tls_key_file = {self.directory}/server.key\nmax_client_conn = 300\ndefault_pool_size = 4\n"
            f"ignore_startup_parameters = extra_float_digits\nlogfile = {directory}/log\n"), 0o644)
        self.pooler = subprocess.Popen([*self.hub.prefix, *self.user, pooler(), "-q", settings], cwd=directory,
                                       env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
        until("pgbouncer", lambda: os.path.exists(os.path.join(directory, f".s.PGSQL.{PORT}"))
              or self.pooler.poll() is not None)
        if self.pooler.poll() is not None:
            raise Trouble("pgbouncer ended: " + read(os.path.join(directory, "log"))[-500:])

    def close(self, keep=False):
        if self.pooler:
            stop(self.pooler)
        for address in list(self.servers):
            self.signal(signal.SIGCONT, address)
            stop(self.servers[address], signal.SIGINT)
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)
