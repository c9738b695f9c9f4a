internal import LocalHTTP
internal import StrictJSON

/// The functions of a project's database: those that an app calls for a profile, and two for tests.
extension SupabaseTables {
    private static let functions = [
        "get_or_create_profile", "update_profile", "deactivate_account", "reactivate_account", "echo", "fail",
    ]

    mutating func runFunction(
        _ call: SupabaseCall, _ subject: String?, _ users: SupabaseUsers
    ) throws(SupabaseRESTError) -> ServerResponse {
        let name = call.parts[1]
        guard SupabaseTables.functions.contains(name) else {
            throw SupabaseRESTError(
                status: 404, code: "PGRST202",
                message: "Could not find the function public.\(name) in the schema cache")
        }
        guard call.method == "POST" else {
            throw SupabaseRESTError(
                status: 405, code: "25006", message: "cannot execute UPDATE in a read-only transaction")
        }
        let parsed = call.request.body.isEmpty ? JSON.object(JSONObject()) : try? JSON(parsing: call.request.body)
        guard let arguments = parsed?.object else {
            throw SupabaseRESTError(status: 400, code: "PGRST102", message: "Empty or invalid json")
        }
        switch name {
        case "echo": return SupabaseResponses.json(.object(arguments))
        case "fail":
            throw SupabaseRESTError(
                status: 400, code: "P0001", message: arguments["message"]?.string ?? "the function raised an exception")
        default: return try changeProfile(name, arguments, subject, call, users)
        }
    }

    private mutating func changeProfile(
        _ name: String, _ arguments: JSONObject, _ subject: String?, _ call: SupabaseCall,
        _ users: SupabaseUsers
    ) throws(SupabaseRESTError) -> ServerResponse {
        guard let subject, let user = users[subject] else {
            throw SupabaseRESTError(
                status: 401, code: "42501", message: "permission denied for function \(name)")
        }
        if name == "get_or_create_profile" { addProfile(of: user, at: call.instant()) }
        guard var table = tables["profiles"],
            let index = table.rows.firstIndex(where: { $0[table.key]?.string == subject })
        else { throw SupabaseRESTError(status: 400, code: "P0002", message: "no profile") }
        switch name {
        case "update_profile":
            for member in arguments.members where member.name != table.key {
                table.rows[index][member.name] = member.value
            }
        case "deactivate_account", "reactivate_account":
            table.rows[index]["is_active"] = .bool(name == "reactivate_account")
        default: break
        }
        if name != "get_or_create_profile" { table.rows[index]["updated_at"] = .string(call.instant().text) }
        tables["profiles"] = table
        return SupabaseResponses.json(.object(table.rows[index]))
    }
}
