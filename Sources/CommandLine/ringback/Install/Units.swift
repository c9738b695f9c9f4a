/// The units, identical to those in systemd/: a test compares what is installed with them.
enum UnitFiles {
    /// Where the packaged units expect the programs.
    static let packagedDirectory = "/usr/bin/"

    static let all = [(name: "ringback.socket", text: socket), (name: "ringback.service", text: service)]

    private static let socket = #"""
        # The socket that apps ask for sessions. systemd holds it, so the daemon may start with the first request:
        #   systemctl --user enable --now ringback.socket
        [Unit]
        Description=Ringback sign-in broker socket

        [Socket]
        ListenStream=%t/ringback/ringback.sock
        SocketMode=0600
        DirectoryMode=0700
        RemoveOnStop=yes
        # A daemon that cannot start (a mistake in its configuration) must not be started repeatedly for the same request.
        FlushPending=yes

        [Install]
        WantedBy=sockets.target

        """#

    private static let service = #"""
        [Unit]
        Description=Ringback sign-in broker
        Requires=ringback.socket
        After=ringback.socket
        StartLimitIntervalSec=10
        StartLimitBurst=5

        [Service]
        Type=notify
        ExecStart=/usr/bin/ringbackd
        # If the configuration has mistakes, the reload fails and changes nothing; the mistakes are in the journal.
        ExecReload=/usr/bin/ringback reload
        Restart=on-failure
        RestartSec=1
        # 69: another daemon uses the state directory. 78: a mistake in the configuration. A restart corrects neither.
        RestartPreventExitStatus=69 78
        TimeoutStopSec=10
        # The daemon reports that it is alive while its sockets and its sessions respond: a daemon that hangs is restarted.
        WatchdogSec=30

        # The vault's key as a credential (key_source = "systemd-credential" in the configuration): a file of 32 random bytes or
        # more, best on another medium than the state, or with systemd 256 and later one that this machine alone can open, made by
        #   head -c 32 /dev/urandom | systemd-creds encrypt --user --name=ringback-vault-key - ~/.config/ringback/vault-key.cred
        # In a drop-in of yours (systemctl --user edit ringback.service), one of:
        #LoadCredential=ringback-vault-key:/media/key/ringback-vault-key
        #LoadCredentialEncrypted=ringback-vault-key:%h/.config/ringback/vault-key.cred

        # A crash must not print memory, and the environment of the session must not affect the process: no preloaded code,
        # no key log, no proxy that the configuration does not name.
        Environment=SWIFT_BACKTRACE=enable=no
        UnsetEnvironment=LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT LD_DEBUG GCONV_PATH LOCPATH NLSPATH MALLOC_CHECK_ GLIBC_TUNABLES
        UnsetEnvironment=SSLKEYLOGFILE OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES SSL_CERT_FILE SSL_CERT_DIR CURL_CA_BUNDLE
        UnsetEnvironment=http_proxy https_proxy all_proxy no_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY
        UnsetEnvironment=PGSERVICE PGSERVICEFILE PGSYSCONFDIR PGOPTIONS PGPASSWORD PGPASSFILE PGHOST PGHOSTADDR PGUSER PGDATABASE
        UMask=0077
        LimitCORE=0
        KeyringMode=private

        # Only settings that a user's own manager can enforce without privileges: ProtectHome= and similar ones would be ignored
        # without notice. PrivateUsers= would hide the uids by which the daemon checks its peers.
        # The programs of client_secret_command run under these rules too; one that needs more (a runtime that makes its code
        # while it runs needs MemoryDenyWriteExecute=no) can be given it with: systemctl --user edit ringback.service
        NoNewPrivileges=yes
        SystemCallFilter=@system-service
        SystemCallErrorNumber=EPERM
        SystemCallArchitectures=native
        # Netlink: name resolution, the owner of a callback's connection, and notifications that the network is back.
        RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
        RestrictNamespaces=yes
        RestrictRealtime=yes
        RestrictSUIDSGID=yes
        LockPersonality=yes
        MemoryDenyWriteExecute=yes
        MemoryMax=512M
        # At the limit the kernel ends one process, first a relay of an exposed socket. The daemon starts it again.
        OOMPolicy=continue
        TasksMax=256

        [Install]
        Also=ringback.socket

        """#
}

extension UnitFiles {
    /// The unit as it starts programs of another directory.
    static func text(_ text: String, programs directory: String) -> String {
        text.replacing("ExecStart=\(packagedDirectory)ringbackd", with: "ExecStart=\(word("\(directory)/ringbackd"))")
            .replacing("ExecReload=\(packagedDirectory)ringback", with: "ExecReload=\(word("\(directory)/ringback"))")
    }

    /// A path as a word of a command line of systemd.service(5). Specifiers and variables are escaped, blanks and
    /// quotes are quoted.
    private static func word(_ path: String) -> String {
        let text = path.replacing("%", with: "%%").replacing("$", with: "$$")
        guard text.contains(where: { " '\"\\;".contains($0) }) else { return text }
        return "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
    }
}
