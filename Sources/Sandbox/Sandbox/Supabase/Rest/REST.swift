internal import LocalHTTP
internal import RingbackBase

/// `/rest/v1/<table>` and `/rest/v1/rpc/<function>`: as much of PostgREST as profiles and functions need. The caller is
/// the subject of the bearer token, whether or not its session has ended.
extension SupabaseProject {
    mutating func answerREST(_ call: SupabaseCall) throws -> ServerResponse {
        let subject = try subject(call)
        if call.parts.count == 2, call.parts[0] == "rpc" { return try runFunction(call, subject) }
        let name = call.parts.joined(separator: "/")
        try require(
            tables[name] != nil, 404, "PGRST205", "Could not find the table 'public.\(name)' in the schema cache")
        switch call.method {
        case "GET": return try select(name, call, subject)
        case "POST": return try insert(name, call, subject)
        case "PATCH", "DELETE": return try change(name, call, subject)
        default: throw SupabaseError(405, "PGRST117", "Unsupported HTTP method")
        }
    }

    private func subject(_ call: SupabaseCall) throws -> String? {
        guard let token = call.bearer, !call.settings.apiKeys.contains(token) else { return nil }
        do {
            return try keys.claims(of: token, at: call.now)["sub"]?.string
        } catch let error as SupabaseError {
            throw error.message.hasSuffix("expired")
                ? SupabaseError(401, "PGRST303", "JWT expired")
                : SupabaseError(401, "PGRST301", "No suitable key or wrong key type")
        }
    }

    private func filters(_ call: SupabaseCall) throws -> [SupabaseFilter] {
        let others: Set = ["select", "order", "limit", "offset", "apikey", "on_conflict", "columns"]
        return try call.pairs.filter { !others.contains($0.name) }.map { pair in
            try unwrap(
                SupabaseFilter(column: pair.name, text: pair.value), 400, "PGRST100",
                "\"failed to parse filter (\(pair.value))\" (line 1, column 1)")
        }
    }

    private func select(_ name: String, _ call: SupabaseCall, _ subject: String?) throws -> ServerResponse {
        let filters = try filters(call)
        let table = tables[name] ?? SupabaseTable()
        var rows = table.rows.filter { row in
            subject != nil && row[table.key]?.string == subject && filters.allSatisfy { $0.accepts(row) }
        }
        if let offset = call.query("offset").flatMap({ Int($0) }) { rows = Array(rows.dropFirst(max(offset, 0))) }
        if let limit = call.query("limit").flatMap({ Int($0) }) { rows = Array(rows.prefix(max(limit, 0))) }
        return try show(rows, call, status: 200)
    }

    /// One object if the request asks for one, else an array.
    private func show(_ rows: [JSONObject], _ call: SupabaseCall, status: Int) throws -> ServerResponse {
        let columns = (call.query("select") ?? "*").split(separator: ",").map { $0.filter { $0 != " " } }
        let shown = rows.map { row in
            columns.contains("*") ? row : JSONObject(columns.map { .init(String($0), row[String($0)] ?? .null) })
        }
        guard call.field("Accept")?.contains("vnd.pgrst.object") == true else {
            return SupabaseResponses.json(value: shown, status: status)
        }
        try require(
            shown.count == 1, 406, "PGRST116", "Cannot coerce the result to a single JSON object",
            details: "The result contains \(shown.count) rows")
        return SupabaseResponses.json(shown[0], status: status)
    }

    private func wantsRows(_ call: SupabaseCall) -> Bool {
        call.field("Prefer")?.contains("return=representation") ?? false
    }

    private func body(_ call: SupabaseCall) throws -> JSON {
        try unwrap(try? JSON(parsing: call.request.body), 400, "PGRST102", "Empty or invalid json")
    }

    private mutating func insert(_ name: String, _ call: SupabaseCall, _ subject: String?) throws -> ServerResponse {
        let body = try body(call)
        let fresh = (body.array ?? [body]).compactMap(\.object)
        guard var table = tables[name] else { return SupabaseResponses.empty(500) }
        for row in fresh {
            try require(
                subject != nil && row[table.key]?.string == subject, subject == nil ? 401 : 403, "42501",
                "new row violates row-level security policy for table \"\(name)\"")
            try require(
                !table.rows.contains { $0[table.key]?.string == subject }, 409, "23505",
                "duplicate key value violates unique constraint \"\(name)_pkey\"",
                details: "Key (\(table.key))=(\(subject ?? "")) already exists.")
            table.rows.append(row)
        }
        tables[name] = table
        return wantsRows(call) ? try show(fresh, call, status: 201) : SupabaseResponses.empty(201)
    }

    private mutating func change(_ name: String, _ call: SupabaseCall, _ subject: String?) throws -> ServerResponse {
        let filters = try filters(call)
        let changes = call.method == "PATCH" ? try body(call).object ?? JSONObject() : nil
        guard var table = tables[name] else { return SupabaseResponses.empty(500) }
        var touched: [JSONObject] = []
        var kept: [JSONObject] = []
        for var row in table.rows {
            guard subject != nil, row[table.key]?.string == subject, filters.allSatisfy({ $0.accepts(row) }) else {
                kept.append(row)
                continue
            }
            if let changes {
                for member in changes.members { row[member.name] = member.value }
                try require(
                    row[table.key]?.string == subject, 403, "42501",
                    "new row violates row-level security policy for table \"\(name)\"")
                kept.append(row)
            }
            touched.append(row)
        }
        table.rows = kept
        tables[name] = table
        return wantsRows(call) ? try show(touched, call, status: 200) : SupabaseResponses.empty(204)
    }
}

/// A table of the project's own. Only the user whose id is in a row's key column sees and changes it.
struct SupabaseTable {
    var key = "id"
    var rows: [JSONObject] = []
}

struct SupabaseFilter {
    let column: String
    let comparison: String
    let operand: String
    let isNegated: Bool

    init?(column: String, text: String) {
        var rest = text[...]
        isNegated = rest.hasPrefix("not.")
        if isNegated { rest = rest.dropFirst(4) }
        let parts = rest.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, ["eq", "neq", "is", "in", "gt", "gte", "lt", "lte"].contains(parts[0]) else {
            return nil
        }
        self.column = column
        comparison = String(parts[0])
        operand = String(parts[1])
    }

    func accepts(_ row: JSONObject) -> Bool { compares(row[column] ?? .null) != isNegated }

    private func compares(_ value: JSON) -> Bool {
        if comparison == "is" { return operand == SupabaseFilter.text(value) }
        // No comparison with null is true.
        guard value != .null else { return false }
        let text = SupabaseFilter.text(value)
        switch comparison {
        case "eq": return text == operand
        case "neq": return text != operand
        case "in":
            let list = operand.dropFirst().dropLast().split(separator: ",").map { item in
                item.hasPrefix("\"") && item.hasSuffix("\"") ? item.dropFirst().dropLast() : item
            }
            return list.contains { $0 == text }
        default:
            let numbers = [text, operand].compactMap { Int($0) }
            let isEqual = numbers.count == 2 ? numbers[0] == numbers[1] : text == operand
            if isEqual { return comparison == "gte" || comparison == "lte" }
            let isLess = numbers.count == 2 ? numbers[0] < numbers[1] : text < operand
            return isLess == comparison.hasPrefix("lt")
        }
    }

    private static func text(_ value: JSON) -> String {
        switch value {
        case .string(let text): text
        case .integer(let number): String(number)
        case .bool(let flag): flag ? "true" : "false"
        case .null: "null"
        default: value.text
        }
    }
}

/// The functions of a project's database: those that an app calls for a profile, and two for tests.
extension SupabaseProject {
    private static let functions = [
        "get_or_create_profile", "update_profile", "deactivate_account", "reactivate_account", "echo", "fail",
    ]

    /// What the trigger on new users does.
    mutating func addProfile(of user: SupabaseUser, at now: SupabaseInstant) {
        guard let table = tables["profiles"], !table.rows.contains(where: { $0[table.key]?.string == user.id }) else {
            return
        }
        tables["profiles"]?.rows.append([
            table.key: user.id, "email": user.email.isEmpty ? JSON.null : .string(user.email),
            "full_name": user.userMetadata["full_name"] ?? JSON.null, "is_active": true, "created_at": now,
            "updated_at": now,
        ])
    }

    private mutating func runFunction(_ call: SupabaseCall, _ subject: String?) throws -> ServerResponse {
        let name = call.parts[1]
        try require(
            Self.functions.contains(name), 404, "PGRST202",
            "Could not find the function public.\(name) in the schema cache")
        try require(call.method == "POST", 405, "25006", "cannot execute UPDATE in a read-only transaction")
        let parsed = call.request.body.isEmpty ? JSONObject() : try body(call).object
        let arguments = try unwrap(parsed, 400, "PGRST102", "Empty or invalid json")
        switch name {
        case "echo": return SupabaseResponses.json(arguments)
        case "fail":
            throw SupabaseError(400, "P0001", arguments["message"]?.string ?? "the function raised an exception")
        default: return try changeProfile(name, arguments, subject, call)
        }
    }

    private mutating func changeProfile(
        _ name: String, _ arguments: JSONObject, _ subject: String?, _ call: SupabaseCall
    ) throws -> ServerResponse {
        let user = try unwrap(subject.flatMap { users[$0] }, 401, "42501", "permission denied for function \(name)")
        let isChange = name != "get_or_create_profile"
        if !isChange { addProfile(of: user, at: call.instant()) }
        guard var table = tables["profiles"],
            let index = table.rows.firstIndex(where: { $0[table.key]?.string == subject })
        else { throw SupabaseError(400, "P0002", "no profile") }
        if name == "update_profile" {
            for member in arguments.members where member.name != table.key {
                table.rows[index][member.name] = member.value
            }
        } else if isChange {
            table.rows[index]["is_active"] = .bool(name == "reactivate_account")
        }
        if isChange { table.rows[index]["updated_at"] = .string(call.instant().text) }
        tables["profiles"] = table
        return SupabaseResponses.json(table.rows[index])
    }
}

/// Edge Functions for tests.
enum EdgeFunctions {
    /// The relay checks the token before it starts a function. The status and body of `fail` are those of the function.
    static func answer(_ call: SupabaseCall, isTokenValid: Bool) -> ServerResponse {
        guard call.bearer != nil else { return relayError(401, "Missing authorization header") }
        guard isTokenValid else { return relayError(401, "Invalid JWT") }
        switch call.parts.joined(separator: "/") {
        case "echo": return SupabaseResponses.json(value: (try? JSON(parsing: call.request.body)) ?? .null)
        case "say-hello": return Responses.text("Hello!", status: 200)
        case "nothing": return SupabaseResponses.empty(204)
        case "fail": return SupabaseResponses.json(["error": "The function has failed."], status: 422)
        default: return relayError(404, code: "NOT_FOUND", "Requested function was not found")
        }
    }

    private static func relayError(_ status: Int, code: String? = nil, _ message: String) -> ServerResponse {
        SupabaseResponses.json(
            ["code": code?.jsonValue ?? status.jsonValue, "message": message], status: status,
            fields: [("x-relay-error", "true")])
    }
}
