import Testing

/// The socket of a login's own runtime directory, in a mount namespace with a `/run` of its own.
@Suite struct `Without XDG_RUNTIME_DIR` {
    private static let unsharing = [
        "/usr/bin/unshare", "--user", "--map-root-user", "--mount", "--propagation", "private",
    ]

    @Test func `the command line finds the daemon in the user's own directory, and only there`() async throws {
        let script = #"""
            own=/run/user/$(id -u)
            mount -t tmpfs none /run && mkdir -p "$own/ringback" && mount --bind "$DIRECTORY" "$own/ringback" || exit 90
            chmod 700 "$own"
            unset RINGBACK_SOCK XDG_RUNTIME_DIR
            "$RINGBACK" token work; echo "missing $?"
            XDG_RUNTIME_DIR="$own/snap.editor" "$RINGBACK" token work; echo "snap $?"
            XDG_RUNTIME_DIR="$EMPTY" "$RINGBACK" token work; echo "chosen $?"
            chmod 777 "$own"
            "$RINGBACK" token work; echo "open $?"
            """#
        try await Stage.play { stage in
            guard try await stage.run(Self.unsharing[0], Self.unsharing.dropFirst() + ["/bin/true"]).status == 0 else {
                try Test.cancel("the kernel, or what guards it, lends no user namespace")
            }
            try await stage.signIn()
            let token = try await stage.token()
            let empty = "\(stage.directory)/empty"
            FileTree.makeDirectory(empty)
            let output = try await stage.run(
                Self.unsharing[0], Self.unsharing.dropFirst() + ["/bin/sh", "-c", script],
                environment: [
                    "DIRECTORY": "\(stage.directory)/run", "EMPTY": empty, "RINGBACK": Programs.path("ringback"),
                ])
            #expect(output.lines == [token, "missing 0", token, "snap 0", "chosen 2", "open 2"], "\(output)")
            #expect(output.err.contains("\(empty)/ringback/ringback.sock"), "\(output)")
            #expect(output.err.contains("XDG_RUNTIME_DIR is not set"), "\(output)")
        }
    }
}
