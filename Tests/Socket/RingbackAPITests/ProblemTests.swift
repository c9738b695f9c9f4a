import RingbackAPI
import RingbackBase
import Testing

@Suite struct `A problem document` {
    @Test func `says what the table says`() {
        let problem = Problem(.rateLimited, "Wait.", retryAfter: 30)
        #expect(
            problem.json.text
                == #"{"title":"Too early: wait before the next attempt","status":429,"code":"rate_limited","detail":"Wait.","#
                + #""recovery":"retry","retry_after":30}"#)
    }

    @Test(arguments: ErrorCode.table.keys.sorted { $0.rawValue < $1.rawValue })
    func `comes back as it went`(code: ErrorCode) throws {
        let bare = Problem(code)
        let full = Problem(
            code, "detail \"quoted\"", recovery: .link, userMessage: "Позже", retryAfter: 0,
            extensions: JSONObject([.init("errors", [["file": "a", "line": 3]]), .init("provider_code", "x")]))
        for problem in [bare, full] {
            let document = try JSON(parsing: problem.json.serialized())
            #expect(Problem(reading: document, status: 599) == problem)
        }
    }

    @Test func `is read from whatever a stranger sends`() {
        let empty = Problem(reading: [:], status: 418)
        #expect(empty.code == "http_418")
        #expect(empty.status == 418)
        #expect(empty.title == "HTTP status 418")
        #expect(empty.recovery == "none")
        #expect(Problem(reading: [1, 2], status: 500).code == "http_500")
        let odd = Problem(reading: ["code": 7, "status": "x", "detail": nil, "retry_after": "soon"], status: 503)
        #expect(odd.code == "http_503")
        #expect(odd.status == 503)
        #expect(odd.detail == nil)
        #expect(odd.retryAfter == nil)
        #expect(odd.extensions.members.isEmpty)
    }

    @Test func `keeps a code and a recovery that are unknown here`() {
        let problem = Problem(reading: ["code": "future_code", "recovery": "phone_home", "hint": "x"], status: 400)
        #expect(problem.code == "future_code")
        #expect(problem.recovery == "phone_home")
        #expect(problem.extensions["hint"] == "x")
    }

    @Test func `of a code without a meaning is our mistake`() {
        let problem = Problem("made_up")
        #expect(problem.status == 500)
        #expect(problem.title == "made_up")
        #expect(problem.recovery == "none")
    }
}
