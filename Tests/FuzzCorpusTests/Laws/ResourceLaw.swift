import RingbackAPI
import RingbackBase
import RingbackClient

/// What apps make of the daemon's JSON: nothing of it traps, a problem says the same when it is written again, and no
/// description shows a token.
enum ResourceLaw {
    /// A token that nothing else of an input looks like.
    private static let token = "Zq7-never-shown-4kX"

    static func check(_ bytes: [UInt8]) throws {
        guard let json = try? JSON(parsing: bytes) else { return }
        let problem = Problem(reading: json, status: 400)
        try hold("what is written is read as the same", Problem(reading: problem.json, status: 400) == problem)
        let error = RingbackError(problem)
        try hold("an error has a kind and words", !"\(error)".isEmpty && error.kind.rawValue == problem.code.rawValue)
        _ = try? Account(reading: json)
        _ = try? DaemonStatus(reading: json)
        if let flow = Flow(reading: json) {
            let isOver = flow.status != .pending && flow.status != .completed
            try hold("a sign-in that failed says why", (flow.failure != nil) == isOver)
        }
        guard var object = json.object else { return }
        object["access_token"] = .string(token)
        let session = try Session(reading: .object(object))
        var shown = "\(session)" + String(reflecting: session)
        dump(session, to: &shown)
        let isElsewhere = object.members.contains { $0.name != "access_token" && $0.value.text.contains(token) }
        try hold("no description shows a token", isElsewhere || !shown.contains(token))
        try hold("a request carries it", session.authorization.hasSuffix(" \(token)"))
    }
}
