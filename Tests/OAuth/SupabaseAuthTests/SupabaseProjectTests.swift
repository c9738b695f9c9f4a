import RingbackBase
import Testing

@testable import SupabaseAuth

@Suite struct `A Supabase project` {
    @Test(
        arguments: [
            ("https://ref.supabase.co", "https://ref.supabase.co/auth/v1"),
            ("https://ref.supabase.co/", "https://ref.supabase.co/auth/v1"),
            ("https://ref.supabase.co/auth/v1", "https://ref.supabase.co/auth/v1"),
            ("https://ref.supabase.co/auth/v1/", "https://ref.supabase.co/auth/v1"),
            ("https://REF.supabase.co:443", "https://ref.supabase.co/auth/v1"),
            ("http://127.0.0.1:54321", "http://127.0.0.1:54321/auth/v1"),
            ("http://localhost:54321", "http://localhost:54321/auth/v1"),
            ("http://[::1]:54321", "http://[::1]:54321/auth/v1"),
            ("http://127.0.0.1:9/supabase", "http://127.0.0.1:9/supabase/auth/v1"),
        ])
    func `the gateway's Auth server is at auth v1`(url: String, authURL: String) throws {
        let project = try SupabaseProject(parsing: url, apiKey: Secret("k"))
        #expect(project.authURL == authURL)
        #expect(project.gatewayURL == String(authURL.dropLast("/auth/v1".count)))
        #expect(project.issuer == authURL)
    }

    @Test func `a bare server is used as it is, and has no tables`() throws {
        let project = try SupabaseProject(parsing: "http://127.0.0.1:9999/", apiKey: nil, layout: .bare)
        #expect(project.authURL == "http://127.0.0.1:9999")
        #expect(project.gatewayURL == nil)
    }

    @Test func `an issuer of another address can be configured`() throws {
        let project = try SupabaseProject(
            parsing: "https://ref.supabase.co", apiKey: nil, issuer: "https://auth.example.org/auth/v1")
        #expect(project.issuer == "https://auth.example.org/auth/v1")
    }

    @Test(
        arguments: [
            "", "ref.supabase.co", "http://ref.supabase.co", "https://ref.supabase.co?x=1", "https://ref.supabase.co#x",
            "https://user@ref.supabase.co", "ftp://ref.supabase.co", "https://ref supabase.co", "http://192.168.1.5",
        ])
    func `an address that secrets may not be sent to is refused`(url: String) {
        #expect(throws: SupabaseProject.Failure.invalidURL) { try SupabaseProject(parsing: url, apiKey: nil) }
    }

    /// `{"role": "anon"}` and `{"role": "service_role"}` as payloads.
    private static let anonymous = "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYW5vbiJ9.c2ln"
    private static let service = "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.c2ln"

    @Test func `the keys that programs may have are taken`() throws {
        for key in ["sb_publishable_x", `A Supabase project`.anonymous, "anything"] {
            #expect(throws: Never.self) { try SupabaseProject(parsing: "https://a.b", apiKey: Secret(key)) }
        }
    }

    @Test(
        arguments: [
            ("sb_secret_x", .privilegedKey), (service, .privilegedKey), ("", .invalidKey), ("a b", .invalidKey),
            ("a\nb", .invalidKey), ("ключ", .invalidKey),
        ] as [(String, SupabaseProject.Failure)])
    func `a key that passes over row-level security is refused, and what is none`(
        key: String, failure: SupabaseProject.Failure
    ) {
        #expect(throws: failure) { try SupabaseProject(parsing: "https://a.b", apiKey: Secret(key)) }
    }

    @Test(
        arguments: [
            ("profiles", true), ("_x9", true), ("Äx", false), ("9x", false), ("", false), ("a-b", false),
            ("a.b", false), (String(repeating: "a", count: 63), true), (String(repeating: "a", count: 64), false),
        ])
    func `names of the database need no quotes`(name: String, isName: Bool) {
        #expect(SupabaseProject.isName(name) == isName)
    }
}
