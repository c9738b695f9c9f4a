import Cryptography
import RingbackBase
import Testing

@testable import SupabaseAuth

private func callback(_ text: String) throws -> SupabaseCallback {
    try SupabaseCallback(parsing: WebURL(parsing: text))
}

private func refusal(_ text: String) throws -> SupabaseError.ErrorResponse? {
    if case .error(let refusal) = try callback(text).outcome { refusal } else { nil }
}

@Suite struct `A callback of Supabase Auth` {
    @Test(
        arguments: [
            "http://127.0.0.1:43117/callback/work/KEY?code=0b9d2c4e",
            "http://127.0.0.1:43117/callback/work/KEY?app=1&code=0b9d2c4e&flag=",
            "app.id://cb?code=0b9d2c4e&flow=KEY", "app.id:?code=0b9d2c4e&flow=KEY",
            "app.id://cb?code=0b9d2c4e&error=&error_code=&flow=KEY", "app.id://cb?code=0b9d2c4e&flow=KEY#sb=",
            "app.id://cb?code=0b9d2c4e&flow=KEY#anchor",
        ])
    func `a code and the flow's key`(text: String) throws {
        let url = try WebURL(parsing: text)
        let callback = try SupabaseCallback(parsing: url)
        #expect(callback.outcome == .code(Secret("0b9d2c4e")))
        #expect(callback.key(at: url) == "KEY")
    }

    @Test func `the key is where the kind of address has it, and nowhere else`() throws {
        let loopback = try WebURL(parsing: "http://127.0.0.1:1/callback/work?code=c&flow=KEY")
        #expect(try SupabaseCallback(parsing: loopback).key(at: loopback) == "work")
        let scheme = try WebURL(parsing: "app.id://cb/KEY?code=c")
        #expect(try SupabaseCallback(parsing: scheme).key(at: scheme) == nil)
        let empty = try WebURL(parsing: "app.id://cb?code=c&flow=")
        #expect(try SupabaseCallback(parsing: empty).key(at: empty) == nil)
        let bare = try WebURL(parsing: "http://127.0.0.1:1/?code=c")
        #expect(try SupabaseCallback(parsing: bare).key(at: bare) == nil)
    }

    @Test func `a flow is found by the digest of its key`() {
        #expect(SupabaseCallback.digest(ofKey: "KEY") == Digest.sha256("KEY"))
    }

    @Test func `a refusal by the user has no code, in query and fragment`() throws {
        let refusal = try refusal(
            "app.id://cb?error=access_denied&error_description=The+user+denied%3A+x&flow=K"
                + "#error=access_denied&error_description=The+user+denied%253A+x&sb=")
        #expect(refusal == .init(code: "access_denied", status: 0, message: "The user denied: x"))
    }

    @Test(
        arguments: [
            ("?error=access_denied&error_code=otp_expired&error_description=Email+link", "otp_expired", "Email link"),
            ("?error_code=over_email_send_rate_limit&error_description=x", "over_email_send_rate_limit", "x"),
            ("?error=server_error&error_code=identity_already_exists", "identity_already_exists", nil),
            ("?error=server_error&error_code=&error_description=hook", "server_error", "hook"),
            ("?error=access_denied&error_code=&error_description=Not+today", "unknown", "Not today"),
            ("?error=server_error&error_code=bad%1Bcode", "server_error", nil),
            ("?error=%1B%5B2J", "unknown", nil),
            ("?error=a&error_description=%1B%5B2Jx", "a", "?[2Jx"),
        ] as [(String, String, String?)])
    func `error_code says more than error`(query: String, code: String, message: String?) throws {
        let refusal = try refusal("app.id://cb\(query)")
        #expect(refusal?.code == code)
        #expect(refusal?.message == message)
        #expect(refusal?.status == 0)
    }

    @Test func `an error in the fragment alone is escaped twice`() throws {
        let refusal = try refusal(
            "app.id://cb?flow=K#error=access_denied&error_code=otp_expired"
                + "&error_description=Email+link%253A+100%2525+%252B&sb=")
        #expect(refusal?.code == "otp_expired")
        #expect(refusal?.message == "Email link: 100% +")
    }

    @Test func `an error in the fragment that is escaped once is read as well`() throws {
        #expect(try refusal("app.id://cb#error=a&error_description=x%3A+100%25")?.message == "x: 100%")
    }

    @Test func `the query is read before the fragment`() throws {
        let refusal = try refusal("app.id://cb?error=a&error_code=first#error=b&error_code=second")
        #expect(refusal?.code == "first")
    }

    @Test(
        arguments: [
            "app.id://cb?message=Confirmation+link+accepted.&flow=K",
            "app.id://cb#message=Confirmation+link+accepted.&sb=",
        ])
    func `the first link of an e-mail change brings a message`(text: String) throws {
        #expect(try callback(text).outcome == .message("Confirmation link accepted."))
    }

    @Test(
        arguments: [
            ("?code=c&code=d", .repeatedParameter("code")), ("?code=c&flow=a&flow=b", .repeatedParameter("flow")),
            ("?error=a&error=a", .repeatedParameter("error")), ("?code=c&error=a", .conflictingParameters),
            ("?code=c&error_code=a", .conflictingParameters), ("?code=c#error=a", .conflictingParameters),
            ("?flow=K", .empty), ("", .empty), ("#sb=", .empty), ("?code=", .empty), ("#code=c", .empty),
            ("?code=a+b", .malformed), ("?code=%00", .malformed), ("?code=%zz", .malformed),
            ("?code=%C3%A9", .malformed),
            ("#access_token=a&refresh_token=b&expires_in=3600&sb=&token_type=bearer", .carriesTokens),
            ("?access_token=a", .carriesTokens), ("?code=c#refresh_token=b", .carriesTokens),
            ("#provider_token=", .carriesTokens), ("?code=c&id_token=a", .carriesTokens),
            ("#access%255Ftoken=a", .carriesTokens),
        ] as [(String, SupabaseCallback.Failure)])
    func `what is not exactly a callback has no meaning`(rest: String, failure: SupabaseCallback.Failure) {
        #expect(throws: failure) { try callback("app.id://cb\(rest)") }
    }

    @Test func `a code is 8192 bytes at most`() throws {
        let longest = String(repeating: "c", count: 8_192)
        #expect(try callback("app.id://cb?code=\(longest)").outcome == .code(Secret(longest)))
        #expect(throws: SupabaseCallback.Failure.malformed) { try callback("app.id://cb?code=\(longest)c") }
    }
}
