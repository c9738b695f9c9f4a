internal import Secrets
internal import StrictJSON

/// Which hosts were removed, as all hosts share it in a row of its own.
///
/// The count grows with each removal that is done. A content has the count that its host knew when it was written (see
/// ``RowContent/removals``): if it is lower, a removed host may have read the content.
struct RemovalRecord: Sendable, Equatable {
    /// A removal that was begun and is not known to be done.
    struct Begun: Sendable, Equatable {
        let role: String
        /// What the host was called.
        let name: String
    }

    var count = 0
    var begun: [Begun] = []

    init() {}

    /// Nil if the text is no such record.
    init?(reading text: Secret) {
        guard let object = (try? JSON(parsing: text.revealedBytes()))?.object, object["version"]?.integer == 1,
            let count = object["count"]?.integer, count >= 0, let begun = object["begun"]?.array
        else { return nil }
        self.count = count
        self.begun = begun.compactMap { entry in
            guard let role = entry["role"]?.string, let name = entry["name"]?.string else { return nil }
            return Begun(role: role, name: name)
        }
        guard self.begun.count == begun.count else { return nil }
    }

    func encoded() -> Secret {
        let begun = begun.map { entry in
            JSON.object(JSONObject([.init("role", .string(entry.role)), .init("name", .string(entry.name))]))
        }
        let object = JSONObject([
            .init("version", .integer(1)), .init("count", .integer(count)), .init("begun", .array(begun)),
        ])
        return Secret(bytes: JSON.object(object).serialized())
    }

    mutating func begin(_ removal: Begun) {
        if !begun.contains(removal) { begun.append(removal) }
    }

    /// Nothing if another host has noted it already.
    mutating func end(_ removal: Begun) {
        guard begun.contains(removal) else { return }
        begun.removeAll { $0 == removal }
        count += 1
    }
}
