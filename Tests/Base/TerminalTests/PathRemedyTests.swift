import RingbackBase
import Terminal
import Testing

@Suite struct `The remedy for an unsafe path` {
    @Test(
        arguments: [
            (.writableByOthers, "chmod go-w /a/b-1.toml"), (.readableByOthers, "chmod 600 /a/b-1.toml"),
            (.openToOthers, "chmod 700 /a/b-1.toml"), (.foreignOwner, "chown 1000 /a/b-1.toml"),
        ] as [(PathTrouble, String)])
    func `is a command`(remedy: PathTrouble, command: String) {
        #expect(remedy.command(for: "/a/b-1.toml", user: 1_000).description == command)
    }

    @Test(arguments: [
        ("/a/it's mine", "'/a/it'\\''s mine'"), ("", "''"), ("/a;b", "'/a;b'"), ("$(id)", "'$(id)'"), ("~/a", "'~/a'"),
        ("/ä", "'/ä'"),
    ])
    func `quotes what a shell would change`(path: String, quoted: String) {
        #expect(ShellWord.quoted(path) == quoted)
    }
}
