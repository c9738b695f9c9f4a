import RingbackBase
import Testing

@testable import SupabaseAuth

private let vectors = SupabaseVector.all(in: "answers").filter { $0["reads"] == "session" }

private func answer(_ bytes: some Collection<UInt8>, isCut: Bool) -> HTTPResponse {
    HTTPResponse(
        status: 200, fields: HTTPFields([("Content-Type", "application/json")]), body: Secret(bytes: bytes),
        truncation: isCut ? .malformed(host: "ref.supabase.co") : nil)
}

@Suite struct `A session's answer` {
    private let whole: [UInt8]
    /// The last byte of the refresh token's member.
    private let end: Int

    init() throws {
        let vector = try #require(vectors.first { $0.name == "session-v1.json" })
        let bytes = try #require(vector["body"]).serialized()
        let member = Array(#""refresh_token":"q3v9x0k2m7ab""#.utf8)
        let start = try #require(bytes.indices.first { bytes[$0...].starts(with: member) })
        whole = bytes
        end = start + member.count
    }

    @Test func `cut off anywhere, gives the whole refresh token or none`() {
        for count in whole.indices {
            let token = (try? SessionResponse(reading: answer(whole[..<count], isCut: true)))?.refreshToken
            // Without what follows it, a token may be the beginning of one.
            #expect(token == (count >= end ? Secret("q3v9x0k2m7ab") : nil), "\(count) bytes")
        }
    }

    @Test func `broken anywhere, never gives another refresh token, and no other user's session`() {
        // A sample, whose stride shares no factor with the length of anything in the text.
        for index in stride(from: 0, to: whole.count, by: 7) {
            for byte in [UInt8(ascii: "\""), UInt8(ascii: "}"), 0xFF] where byte != whole[index] {
                var broken = whole
                broken[index] = byte
                guard let read = try? SessionResponse(reading: answer(broken, isCut: false)) else { continue }
                if let token = read.refreshToken?.revealed() {
                    #expect(token == "q3v9x0k2m7ab" || (end - 14..<end).contains(index), "byte \(index)")
                }
                guard case .session(let session)? = try? read.outcome(), let user = session.user else { continue }
                #expect(user.id == session.claims.subject)
            }
        }
    }

    @Test func `brings a lifetime that needs no clock, where the server says it`() throws {
        let session = try SessionResponse(reading: answer(whole, isCut: false)).session()
        for now in [0, 1_787_396_400, 4_000_000_000] { #expect(session.lifetime(now: now) == 3600) }
        #expect(session.expiresAt == 1_787_400_000)
    }

    @Test func `prints none of its tokens`() throws {
        let session = try SessionResponse(reading: answer(whole, isCut: false)).session()
        var text = ""
        dump(session, to: &text)
        text += "\(session)"
        #expect(!text.contains("q3v9x0k2m7ab"))
        #expect(!text.contains(session.accessToken.revealed()))
    }
}
