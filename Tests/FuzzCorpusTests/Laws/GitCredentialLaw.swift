import Adapters
import RingbackBase

/// What git writes to a credential helper. The first line is the action, the rest git's input.
enum GitCredentialLaw {
    static func check(_ bytes: [UInt8]) throws {
        let (line, rest) = bytes.headLineAndRest
        guard let action = GitCredential.Action(rawValue: line), let read = try? GitCredential(action, reading: rest)
        else { return }
        if let request = read.request {
            let url = try WebURL(parsing: request.url)
            try hold("a lookup names a host", url.host?.isEmpty == false)
            try hold("a lookup has no query and no fragment", url.query == nil && url.fragment == nil)
            try hold("a rejection is of erase", (request.rejected != nil) == (action == .erase))
            try hold("a digest has 64 digits", request.rejected?.utf8.count ?? 64 == 64)
            let name = request.username ?? "x"
            try hold("a user name has no control character", name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
        }
        let text = String(decoding: rest, as: UTF8.self)
        let credential = AdapterCredential(
            headers: ["Authorization: Bearer \(text)"], username: text, secret: text, expiresAt: nil)
        if let answer = try? read.answer(credential) {
            let lines = answer.split(separator: 0x0A)
            try hold("an answer has 3 to 4 lines", (3...4).contains(lines.count))
            try hold("an answer ends with a line break", answer.last == 0x0A)
        }
    }
}
