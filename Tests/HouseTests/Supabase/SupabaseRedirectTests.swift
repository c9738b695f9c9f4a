// What is to be registered at a project: `account add`, `config check` and the project itself agree. A loopback address
// needs nothing; whatever is printed for another one is enough, and nothing less is.

import RingbackBase
import Testing

@Suite struct `The redirect URLs of a project` {
    /// Where a browser ends that a project is to send to `address`.
    private func landing(_ stage: Stage, _ address: String) async throws -> String {
        var escaped = address.replacing(":", with: "%3A").replacing("/", with: "%2F")
        escaped = escaped.replacing("[", with: "%5B").replacing("]", with: "%5D")
        let query =
            "provider=github&code_challenge_method=s256&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        let url = "\(stage.sandbox.origin)/supabase/auth/v1/authorize?\(query)&redirect_to=\(escaped)"
        // Nobody listens at the end of the way.
        let walk = try await stage.run(
            "/usr/bin/curl", ["-sgL", "--max-redirs", "9", "-o", "/dev/null", "-w", "%{url_effective}", url])
        return String(walk.out.prefix { $0 != "?" })
    }

    private static let callbacks: [(redirect: String?, entry: String?, callback: String)] = [
        (nil, nil, "http://127.0.0.1:9/callback/shop/KEY"),
        ("http://127.0.0.1:9/cb", nil, "http://127.0.0.1:9/cb/KEY"),
        ("http://[::1]:{port}/cb", nil, "http://[::1]:9/cb/KEY"),
        ("http://localhost:9/cb", "http://localhost:9/cb/**", "http://localhost:9/cb/KEY"),
        ("http://localhost:{port}/cb", "http://localhost:*/cb/**", "http://localhost:9/cb/KEY"),
    ]

    @Test func `account add and config check print the redirect URL that the project needs`() async throws {
        let site = "http://127.0.0.1:9/site"
        try await Stage.playProject(["site_url": .string(site), "allow_list": []]) { stage in
            for (redirect, entry, callback) in Self.callbacks {
                let added = try await stage.run(
                    "ringback",
                    [
                        "account", "add", "shop", "--provider", "supabase", "--url",
                        "\(stage.sandbox.origin)/supabase", "--api-key", "sb_publishable_sandbox", "--replace",
                    ] + (redirect.map { ["--redirect-uri", $0] } ?? []), status: 0)
                let list = entry.map { ["Add to the project's redirect URLs:", "  \($0)"] } ?? []
                #expect(Array(added.lines.dropFirst()) == list, "\(added)")
                let check = try await stage.ringback("config", "check", "--json")
                let shop = try check.json["accounts"]?.array?.first { $0["name"] == "shop" }
                #expect(shop?["redirect_uri"]?.string == entry ?? "", "\(check)")
                let words = entry.map { "redirect URL to add to the project: \($0)" } ?? "no redirect URL to add"
                try await stage.ringback("config", "check", prints: "shop: supabase, \(words)\n")
                let first = try await landing(stage, callback)
                #expect(first == (entry == nil ? callback : site))
                guard let entry else { continue }
                try await stage.setProject(["allow_list": [.string(entry)]])
                #expect(try await landing(stage, callback) == callback)
                try await stage.setProject(["allow_list": []])
            }
        }
    }

    @Test func `a pasted Site URL names the redirect URL that the project lacks`() async throws {
        let site = "https://app.example.org"
        try await Stage.playProject(["site_url": .string(site), "allow_list": []]) { stage in
            let redirect = "http://localhost:{port}/cb"
            try stage.write(configuration: Stage.project + "redirect_uri = \"\(redirect)\"\n")
            try await stage.ringback("reload", status: 0)
            let flow = try await stage.begin("app", ["oauth_provider": "github"])
            let walk = try await stage.run(
                "/usr/bin/curl",
                [
                    "-sL", "--max-redirs", "9", "-o", "/dev/null", "-w", "%{url_effective}", "--connect-timeout", "1",
                    flow.authorizationURL,
                ])
            #expect(walk.out.hasPrefix("\(site)/?code=") || walk.out.hasPrefix("\(site)?code="), "\(walk)")
            let pasted = try await stage.ringback("complete", walk.out)
            #expect(pasted.status != 0, "\(pasted)")
            for words in ["ended at \(site)", "Add this to its redirect URLs", "http://localhost:*/cb/**"] {
                #expect(pasted.err.contains(words), "\(words): \(pasted)")
            }
            #expect(try await stage.api("GET", "/v1/flows/\(flow.id)")["status"] == "pending")
        }
    }
}
