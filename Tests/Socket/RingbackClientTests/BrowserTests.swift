import RingbackBase
import Testing

@testable import RingbackClient

@Suite struct `Opening a browser` {
    private let url = "https://id.example.org/a?b=%20c"

    @Test func `NAT-39, NAT-40: BROWSER is a list of templates, and xdg-open stands in for it`() {
        #expect(Browser.commands(for: url, nil) == [["xdg-open", url]])
        #expect(Browser.commands(for: url, "") == [["xdg-open", url]])
        #expect(Browser.commands(for: url, "firefox") == [["firefox", url]])
        #expect(
            Browser.commands(for: url, "my-browser --new %s:lynx")
                == [["my-browser", "--new", url], ["lynx", url]])
        #expect(Browser.commands(for: url, "b 100%% --url=%s") == [["b", "100%", "--url=\(url)"]])
    }

    @Test func `PR-01, NAT-39, ADV-03, ADV-04, ADV-16: no shell reads the URL`() {
        let hostile = "https://x.example/$(id)';`id`"
        #expect(Browser.commands(for: hostile, "sh-like '%s'") == [["sh-like", "'\(hostile)'"]])
    }

    @Test func `an account's browser gets the address as one argument, once`() {
        #expect(PageSettings.command(["firefox", "-P", "work"], opening: url) == ["firefox", "-P", "work", url])
        #expect(PageSettings.command(["b", "--app={url}", "-x"], opening: url) == ["b", "--app=\(url)", "-x"])
        #expect(Browser.start("http://example.org/", in: ["/bin/true"]) == nil)
    }

    @Test(arguments: [
        "https://id.example.org/authorize?a=b", "http://127.0.0.1:80/x", "http://localhost:3000/", "http://[::1]:9/",
        "http://rb-0a.localhost:3000/",
    ])
    func `https, and http on loopback, may be opened`(url: String) { #expect(LoopbackURL.isSafeToOpen(url)) }

    @Test(arguments: [
        "", "file:///etc/passwd", "javascript:alert(1)", "http://example.org/", "--new-window", "https://",
        "https:///x",
        "https://user@host/", "http://127.0.0.1@evil.example/", "http://127.0.0.1.evil.example/", "https://a b/",
        "https://a/\n", "https://a/\u{1B}", "https://a/\"", "https://a\\b/", "HTTPS://a/", "http://localhost:x/",
        "http://127.0.0.1:70000/", "http://localhost:000000978/", "http://127.0.0.1:/", "http://127.0.0.1:0/",
        "https://é/", "http://localhost.evil.example/", "http://a.localhost:0/", "http://u@a.localhost/",
        "http://alocalhost/", "http://.localhost@evil.example/",
    ])
    func `PR-01: nothing else may be opened`(url: String) { #expect(!LoopbackURL.isSafeToOpen(url)) }

    @Test func `a location leads on from where it was given, and never off loopback`() throws {
        let page = try #require(LoopbackURL("http://127.0.0.1:81/a/b?c=d#e"))
        #expect(page.target == "/a/b?c=d")
        #expect(page.following("/done")?.target == "/done")
        #expect(page.following("/done")?.port == 81)
        #expect(page.following("?x=y")?.target == "/a/b?x=y")
        #expect(page.following("http://[::1]:82/z") == LoopbackURL("http://[::1]:82/z"))
        #expect(page.following("//evil.example/") == nil)
        #expect(page.following("http://evil.example/") == nil)
        #expect(LoopbackURL("http://localhost")?.port == 80)
    }
}

@Suite struct `A subprocess` {
    @Test func `an exit status and a signal are told apart`() throws {
        #expect(Subprocess.wait(try #require(Subprocess.start(["/bin/sh", "-c", "exit 7"]))) == 7)
        #expect(Subprocess.wait(try #require(Subprocess.start(["/bin/sh", "-c", "kill -9 $$"]))) == 128 + 9)
    }

    @Test func `arguments arrive as they were given`() throws {
        let hostile = "a b'\"$(exit 3);`exit 4`\n"
        let pid = try #require(Subprocess.start(["/bin/sh", "-c", "test \"$1\" = \"$2\"", "sh", hostile, hostile]))
        #expect(Subprocess.wait(pid) == 0)
    }

    @Test func `a program that is not there cannot be started`() {
        #expect(Subprocess.start(["/there/is/no/such/program"]) == nil)
        #expect(Subprocess.start([]) == nil)
        #expect(Subprocess.start(["/bin/true", "a\0b"]) == nil)
    }

    @Test func `a stated environment is the whole environment`() throws {
        let pid = try #require(
            Subprocess.start(["/bin/sh", "-c", "test \"$X-$HOME\" = 1-"], environment: ["X=1"]))
        #expect(Subprocess.wait(pid) == 0)
    }
}
