internal import StrictJSON

/// The project's own tables, each with one rule: a row belongs to the user whose id is in its key column, and only that
/// user sees and changes it.
struct SupabaseTables {
    struct Table {
        /// The column that names the owner.
        var key = "id"
        var rows: [JSONObject] = []
    }

    /// `profiles` exists from the start.
    var tables: [String: Table] = ["profiles": Table()]

    /// What the trigger on new users does.
    mutating func addProfile(of user: SupabaseUser, at now: SupabaseInstant) {
        guard var table = tables["profiles"], !table.rows.contains(where: { $0[table.key]?.string == user.id }) else {
            return
        }
        var row = JSONObject([.init(table.key, .string(user.id))])
        row["email"] = user.email.isEmpty ? .null : .string(user.email)
        row["full_name"] = user.userMetadata["full_name"] ?? .null
        row["is_active"] = true
        row["created_at"] = .string(now.text)
        row["updated_at"] = .string(now.text)
        table.rows.append(row)
        tables["profiles"] = table
    }

    /// The rows that a user may see; nil for a table that does not exist.
    func rows(of table: String, visibleTo subject: String?) -> [JSONObject]? {
        guard let table = tables[table] else { return nil }
        return table.rows.filter { subject != nil && $0[table.key]?.string == subject }
    }
}

/// A condition of a request's query: `id=eq.X`.
struct SupabaseFilter {
    let column: String
    let comparison: String
    let operand: String
    let isNegated: Bool

    /// Nil for an unknown operator.
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
            let order = Int(text).flatMap { left in Int(operand).map { left < $0 ? -1 : left > $0 ? 1 : 0 } }
            let result = order ?? (text < operand ? -1 : text > operand ? 1 : 0)
            switch comparison {
            case "gt": return result > 0
            case "gte": return result >= 0
            case "lt": return result < 0
            default: return result <= 0
            }
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
