import LocalHTTP
import RingbackBase
import Testing

@testable import Sandbox

@Suite struct `The site` {
    let visitor = Visitor.quick()

    @Test(arguments: ["", "/tenant-a", "/tenant-b"]) func `has an issuer at its root and two below`(prefix: String)
        async
    {
        var visitor = visitor
        visitor.prefix = prefix
        let metadata = await visitor.get("/.well-known/openid-configuration").json
        #expect(metadata["issuer"] == .string(origin + prefix))
        #expect(metadata["token_endpoint"] == .string(origin + prefix + "/token"))
        #expect(metadata["code_challenge_methods_supported"] == ["S256"])
        #expect(metadata["authorization_response_iss_parameter_supported"] == true)
        #expect(metadata["request_uri_parameter_supported"] == false)
        let inserted = await visitor.send("GET", "/.well-known/oauth-authorization-server" + prefix).json
        #expect(inserted == metadata)
    }

    @Test func `keeps its issuers apart`() async throws {
        let tokens = try await visitor.signIn()
        var other = visitor
        other.prefix = "/tenant-a"
        #expect(await other.userinfo(try tokens.text("access_token")).status == 401)
        #expect(await other.refresh(try tokens.text("refresh_token")).error == "invalid_grant")
        #expect(await other.exchange(try await visitor.code()).error == "invalid_grant")
        #expect(await visitor.refresh(try tokens.text("refresh_token")).status == 200)
    }

    @Test(arguments: [
        "/tenant-c/token", "/tenant-atoken", "/tokens", "/.well-known/oauth-authorization-server/x", "//token",
    ])
    func `has nothing anywhere else`(path: String) async {
        #expect(await visitor.send("GET", path).status == 404)
    }

    @Test func `is not there for other names of this machine`() async {
        for host in ["evil.example.org", "evil.example.org:8080", "127.0.0.1:81", "127.0.0.1"] {
            let request = ServerRequest(
                method: "GET", target: "/jwks", fields: HTTPFields([("Host", host)]), body: [],
                peer: .local(uid: 0, pid: 0))
            #expect(await visitor.site.respond(to: request).status == 421, "\(host)")
        }
    }

    @Test func `shows a person what is where`() async {
        let page = await visitor.send("GET", "/")
        #expect(page.status == 200)
        #expect(page.text.contains("\(origin)/tenant-a/.well-known/openid-configuration"))
        #expect(page.text.contains("ringback-demo"))
    }

    @Test func `answers nothing before it is open`() async {
        let site = SandboxSite()
        let request = ServerRequest(
            method: "GET", target: "/", fields: HTTPFields(), body: [], peer: .local(uid: 0, pid: 0))
        #expect(await site.respond(to: request).status == 503)
        #expect(site.issuers.isEmpty)
    }
}

@Suite struct `The sandbox's pages` {
    @Test func `show text from outside as text`() async throws {
        var options = SandboxOptions()
        options.clients = [SandboxClient(id: "<script>alert('1')</script>&\"")]
        let page = await Visitor(options).authorize(["client_id": options.clients[0].id, "scope": "<b>"])
        #expect(page.status == 200)
        #expect(!page.text.contains("<script"))
        #expect(!page.text.contains("<b>"))
        #expect(page.text.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;&quot;"))
        let form = await Visitor.quick().authorize(["response_mode": "form_post", "state": "\"><script>"])
        #expect(!form.text.contains("\"><script>"))
    }

    @Test func `can be used without eyes, mouse and script`() async {
        let page = await Visitor().authorize(["login_hint": "bob"])
        #expect(page.text.contains("<html lang=\"en\">"))
        #expect(page.text.contains("<main>"))
        #expect(page.text.contains("<legend>Sign in as</legend>"))
        #expect(page.text.contains("<label for=\"user-1\">Bob (bob@example.org)</label>"))
        #expect(page.text.contains("value=\"bob\" required checked"))
        #expect(!page.text.contains("<script"))
        #expect(page.fields["Content-Security-Policy"]?.hasPrefix("default-src 'none'") == true)
        #expect(page.fields["X-Frame-Options"] == "DENY")
    }
}
