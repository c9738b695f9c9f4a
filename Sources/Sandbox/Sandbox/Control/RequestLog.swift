internal import HTTPMessages
internal import StrictJSON

/// The requests that an issuer has seen, with everything in them. The secrets of a sandbox need no protection, and a
/// test must be able to prove that a server never saw a token.
struct RequestLog {
    struct Entry {
        let number: Int
        let at: Int
        let endpoint: Endpoint
        let method: String
        let path: String
        let fields: HTTPFields
        let pairs: [FormEncoding.Pair]
        /// A body that is JSON.
        let document: JSON?
        /// Nil while the request is held.
        var status: Int?
    }

    private(set) var entries: [Entry] = []
    private var nextNumber = 1
    /// When there are more, the oldest are removed.
    private static let maxEntries = 10_000

    /// Returns the entry's number.
    mutating func append(_ request: SandboxRequest, _ endpoint: Endpoint, at now: Int) -> Int {
        if entries.count >= RequestLog.maxEntries { entries.removeFirst(RequestLog.maxEntries / 10) }
        defer { nextNumber += 1 }
        entries.append(
            Entry(
                number: nextNumber, at: now, endpoint: endpoint, method: request.method, path: request.path,
                fields: request.fields, pairs: request.pairs,
                document: request.form == nil ? try? JSON(parsing: request.body) : nil))
        return nextNumber
    }

    mutating func answered(_ number: Int, with status: Int) {
        guard let index = entries.lastIndex(where: { $0.number == number }) else { return }
        entries[index].status = status
    }

    var json: JSON { ["requests": .array(entries.map(\.json))] }
}

extension RequestLog.Entry {
    /// A parameter that was repeated is an array.
    fileprivate var json: JSON {
        var parameters = JSONObject()
        for name in Set(pairs.map(\.name)).sorted() {
            let values = pairs.filter { $0.name == name }.map { JSON.string($0.value) }
            parameters[name] = values.count == 1 ? values.first : .array(values)
        }
        var headers = JSONObject()
        for field in fields.lines { headers[field.name.lowercased()] = .string(field.value) }
        return [
            "number": .integer(number), "at": .integer(at), "endpoint": .string(endpoint.rawValue),
            "method": .string(method), "path": .string(path), "parameters": .object(parameters),
            "headers": .object(headers), "document": document ?? .null, "status": status.map(JSON.integer) ?? .null,
        ]
    }
}
