import Glibc
import RingbackBase
import TestSupport
import Testing

/// What makes a program root of a container of its own, as rootless containers do: the caller becomes its root.
private let unsharing = [
    "/usr/bin/unshare", "--user", "--map-root-user", "--mount", "--propagation", "private",
]

private let canUnshare: Bool = runs(unsharing + ["/bin/true"])
/// True if root can play another user, in a namespace where they have another number.
private let canRenumber: Bool =
    geteuid() == 0
    && runs([Stranger.setpriv] + Stranger.becoming(Stranger.namedUID) + renumbering + ["/bin/true"])

private let renumbering = ["/usr/bin/unshare", "--user", "--map-user=1000", "--map-group=1000"]

private func runs(_ arguments: [String]) -> Bool {
    var pid: pid_t = 0
    var vector = unsafe arguments.map { unsafe strdup($0) } + [nil]
    defer { unsafe vector.forEach { unsafe free($0) } }
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
    guard unsafe posix_spawn(&pid, arguments[0], &actions, nil, &vector, nil) == 0 else { return false }
    var status: Int32 = 0
    return unsafe waitpid(pid, &status, 0) == pid && status == 0
}

/// Restricted sockets in what a container is made of: a mount namespace with one directory of the host, and a user
/// namespace in which uids have other numbers.
@Suite struct `In a container` {
    private static let account = """
        [accounts.mail]
        issuer = "{sandbox}"
        client_id = "ringback-demo"
        scopes = ["openid", "email", "offline_access"]

        """

    private func mount(_ name: String, _ stage: Stage) -> String { "\(stage.directory)/run/ringback/mount/\(name)" }

    @Test(.enabled(if: canUnshare, "the kernel, or what guards it, lends no user namespace"))
    func `the mounted directory is all of the daemon that is there, and works on after a restart`() async throws {
        // Its own socket is out of sight, and so are the others that are exposed.
        let script = #"""
            mount --bind "$DIRECTORY" "$BOX" && mount -t tmpfs none "$HIDDEN" || exit 90
            ls "$HIDDEN" "$BOX"; id -u
            "$RINGBACK" token mail || exit 91
            echo ready; read -r line <"$FIFO"
            "$RINGBACK" token mail --scope email && echo wider
            exec "$RINGBACK" status
            """#
        try await Stage.play(Self.account) { stage in
            try await stage.signIn("mail")
            try await stage.ringback("expose", "ci", "--account", "mail", "--scope", "openid")
            try await stage.ringback("expose", "other", "--account", "mail")
            let box = "\(stage.directory)/box"
            FileTree.makeDirectory(box)
            let fifo = "\(stage.directory)/fifo"
            #expect(unsafe mkfifo(fifo, 0o600) == 0)
            let inside = try stage.start(
                unsharing[0], Array(unsharing.dropFirst()) + ["/bin/sh", "-c", script],
                environment: [
                    "DIRECTORY": mount("ci", stage), "BOX": box, "HIDDEN": "\(stage.directory)/run", "FIFO": fifo,
                    "RINGBACK": Programs.path("ringback"), "RINGBACK_SOCK": "\(box)/socket",
                ])
            _ = try await inside.output.first("the first token: \(inside.errors.value.text)") { transcript in
                transcript.lines.contains("ready") || transcript.isOver ? true : nil
            }
            let lines = inside.output.value.lines
            #expect(lines.contains("socket") && lines.contains("0") && lines.last == "ready", "\(inside.errors.value)")
            #expect(!lines.contains("ringback.sock") && !lines.contains("ringback"))
            let downscoped = try await stage.api("GET", "/v1/accounts/mail/session?scope=openid")["access_token"]?
                .string
            #expect(lines.contains(downscoped ?? "?"))
            try await stage.stopDaemon()
            try await stage.startDaemon()
            // Waits for its reader, and lets it go on.
            try await onThread {
                let file = unsafe open(fifo, O_WRONLY | O_CLOEXEC)
                defer { close(file) }
                guard unsafe write(file, "go\n", 3) == 3 else { throw Late(what: "a line") }
            }
            let ended = try await inside.end().expect(0, prints: "Restricted ci: tokens of mail")
            #expect(!ended.out.contains("wider"))
        }
    }

    @Test(.enabled(if: canRenumber, "only root can act as another user, in a user namespace"))
    func `a user with another number is let in if they are named, and believes the socket if they are told to`()
        async throws
    {
        guard try await Stranger.canRunTheDaemon() else {
            try Test.cancel("nobody cannot run \(Programs.path("ringbackd")) on this machine")
        }
        let ask = #"curl -s --unix-socket "$BOX/socket" http://ringback/v1/accounts/mail/session; echo " curl $?""#
        let script = #"""
            \#(ask); id -u
            "$RINGBACK" token mail; echo "unasked $?"
            RINGBACK_SERVER_UID=65534 "$RINGBACK" token mail; echo "told $?"
            """#
        try await Stage.play(Self.account) { stage in
            try await stage.signIn("mail")
            let uid = Stranger.namedUID
            try await stage.ringback("expose", "ci", "--account", "mail", "--allow-uid", String(uid))
            let box = "\(stage.directory)/box"
            FileTree.makeDirectory(box)
            // They find the way to what is mounted for them, not to where it is.
            FileTree.setMode(0o711, of: stage.directory)
            func inside(_ uid: UInt32, _ words: [String]) async throws -> Output {
                try await stage.run(
                    "/usr/bin/unshare",
                    [
                        "--mount", "--propagation", "private", "/bin/sh", "-c",
                        #"mount --bind "$DIRECTORY" "$BOX" && cd / && exec "$@""#, "sh", Stranger.setpriv,
                    ] + Stranger.becoming(uid) + words,
                    environment: [
                        "DIRECTORY": mount("ci", stage), "BOX": box, "RINGBACK": Programs.path("ringback"),
                        "RINGBACK_SOCK": "\(box)/socket",
                    ])
            }
            let token = try #require(try await stage.token("mail"))
            let named = try await inside(uid, renumbering + ["/bin/sh", "-c", script])
            #expect(named.lines.contains { $0.contains(token) && $0.hasSuffix(" curl 0") }, "\(named)")
            #expect(named.lines.contains("1000"))
            // The daemon's user has no number there: whoever else has none looks the same.
            #expect(named.lines.contains("unasked 2") && named.err.contains("RINGBACK_SERVER_UID=65534"), "\(named)")
            #expect(named.out.contains("\(token)\ntold 0"), "\(named)")
            // Somebody else gets as far, and not a byte.
            let other = try await inside(Stranger.uid, ["/bin/sh", "-c", ask])
            #expect(other.out.hasPrefix(" curl ") && other.out != " curl 0\n", "\(other)")
            let entries = try await stage.api("GET", "/v1/audit")["entries"]?.array ?? []
            #expect(
                entries.contains { $0["event"] == "exposed_socket_refused" && $0["uid"]?.integer == Int(Stranger.uid) })
            #expect(entries.contains { $0["exposed_socket"] == "ci" && $0["uid"]?.integer == Int(uid) })
        }
    }
}
