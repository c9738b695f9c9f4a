internal import RingbackBase
public import SupabaseAuth

struct SupabaseReader {
    static let keys = [
        "url", "api_key", "gateway", "token_issuer", "redirect_flow_key", "oauth_provider", "allow_missing_nonce",
        "id_token_account", "profile", "profile_rpc", "rpc", "edge_functions",
    ]

    let table: SettingTable

    /// Nil if there is an error.
    func read() -> AccountProvider? {
        let before = table.check.errors.count
        let isBare = table.boolean("gateway") == false
        for key in isBare ? ["url"] : ["url", "api_key"] where !table.isWritten(key) {
            table.refuse(key, "is missing: provider = \"supabase\" needs it")
        }
        for key in ["profile", "profile_rpc", "rpc", "edge_functions"] where isBare && table.isWritten(key) {
            let servers = key == "edge_functions" ? "functions" : "tables"
            table.refuse(key, "needs the project's \(servers), and an Auth server alone (gateway = false) has none")
        }
        let (url, key) = (table.string("url"), table.string("api_key").map { Secret($0) })
        // Checked separately, so that both errors are reported.
        table.reporting("url") { () throws(SupabaseProject.Failure) in
            if let url { _ = try SupabaseProject(parsing: url, apiKey: nil) }
        }
        table.reporting("api_key") { () throws(SupabaseProject.Failure) in
            if let key { _ = try SupabaseProject(parsing: "https://project.invalid", apiKey: key) }
        }
        let isGood = table.check.errors.count == before
        let issuer = readTokenIssuer()
        guard isGood, let url, isBare || key != nil,
            let project = try? SupabaseProject(
                parsing: url, apiKey: key, layout: isBare ? .bare : .gateway, issuer: issuer)
        else { return nil }
        return readRules(of: project).map { .supabase($0) }
    }

    /// The issuer is compared byte for byte with the tokens' `iss`, so it is not normalized.
    private func readTokenIssuer() -> String? {
        let rule = "must be an https URL as the tokens' iss has it, without query and fragment"
        return table.text("token_issuer", rule) { text in
            let url = try? WebURL(parsing: text)
            return url?.isSecure == true && url?.query == nil && url?.fragment == nil
        }
    }

    private func readRules(of project: SupabaseProject) -> SupabaseConfiguration? {
        let before = table.check.errors.count
        readNames()
        let profile = readProfile(of: project)
        if table.string("id_token_account") == table.name {
            table.refuse("id_token_account", "must name another account")
        }
        let isKeyless = table.word("redirect_flow_key") == FlowKeyPlace.nowhere
        checkBrowser(of: project, isKeyless: isKeyless)
        guard table.check.errors.count == before else { return nil }
        return SupabaseConfiguration(
            project: project, callbackCarriesFlowKey: !isKeyless, oauthProvider: table.string("oauth_provider"),
            allowsMissingNonce: table.boolean("allow_missing_nonce") ?? false,
            idTokenAccount: table.string("id_token_account"), profileTable: profile?.table,
            profileKey: profile?.key ?? SupabaseReader.usualProfileKey,
            profileFunction: table.string("profile_rpc"), functions: table.strings("rpc")?.map(\.text) ?? [],
            edgeFunctions: table.strings("edge_functions")?.map(\.text) ?? [])
    }

    private static let usualProfileKey = "id"
    private static let nameRule = "is not a name: letters, digits and “_”, at most 63, no digit first"

    private func readNames() {
        for (word, node) in table.strings("rpc") ?? [] where !SupabaseProject.isName(word) {
            table.refuse("rpc", node, "“\(word)” \(SupabaseReader.nameRule)")
        }
        for (word, node) in table.strings("edge_functions") ?? [] where !SupabaseProject.isEdgeFunction(word) {
            table.refuse("edge_functions", node, "“\(word)” is not a name: letters, digits, “_” and “-”, no path")
        }
        guard let function = table.string("profile_rpc") else { return }
        if !SupabaseProject.isName(function) { table.refuse("profile_rpc", SupabaseReader.nameRule) }
        if !table.isWritten("profile") { table.refuse("profile_rpc", "creates a row of profile, which is missing") }
    }

    /// Reads `profile`. Names that PostgREST would not read as a table and a column are errors.
    private func readProfile(of project: SupabaseProject) -> (table: String, key: String)? {
        guard let profile = table.table("profile") else { return nil }
        guard let name = profile.string("table") else {
            if !table.isWritten("table", in: "profile") {
                table.refuse("profile", "needs a table: profile = { table = \"profiles\", key = \"id\" }")
            }
            return nil
        }
        let key = profile.string("key") ?? SupabaseReader.usualProfileKey
        for member in profile.members {
            guard case .string(let word) = member.node.value, !SupabaseProject.isName(word) else { continue }
            table.refuse("profile", member.node, member.key, SupabaseReader.nameRule)
            return nil
        }
        guard (try? project.http(.row(in: name, where: key, is: "x"))) != nil else {
            table.refuse("profile", "“\(key)” is a reserved parameter of PostgREST and cannot be a column")
            return nil
        }
        return (name, key)
    }

    /// Checks values that the server would reject or change, so that the error appears before a sign-in.
    private func checkBrowser(of project: SupabaseProject, isKeyless: Bool) {
        if let word = table.string("oauth_provider"), (try? ProviderName.checked(word)) == nil {
            table.refuse("oauth_provider", "must be a provider's name, such as google or custom:acme")
        }
        guard let base = table.string("redirect_uri")?.replacing("{port}", with: "1"), !base.contains(":0/") else {
            return
        }
        table.reporting("redirect_uri") { () throws(FieldError) in
            _ = try SupabaseRedirect(base: base, key: "key", isKeyless: isKeyless)
        }
    }
}

extension FieldError: SettingFailure {
    var message: String { reason }
}

extension SupabaseProject.Failure: SettingFailure {
    var message: String {
        switch self {
        case .invalidURL: "must be the project's https URL (http on loopback), without query and fragment"
        case .invalidKey: "must be printable ASCII without spaces"
        case .privilegedKey: "is a secret key, which bypasses every rule of the project: use the publishable one"
        }
    }
}

public struct SupabaseConfiguration: Sendable, Equatable {
    public let project: SupabaseProject
    /// False if a callback with a custom scheme has no flow key (for exact allow lists).
    public let callbackCarriesFlowKey: Bool
    /// The default provider of browser sign-ins.
    public let oauthProvider: String?
    /// In ID tokens.
    public let allowsMissingNonce: Bool
    /// The account whose ID token is used for a sign-in whose request contains no ID token.
    public let idTokenAccount: String?
    /// The table with the app's own rows about users.
    public let profileTable: String?
    /// The column with the user's id.
    public let profileKey: String
    /// The function that creates a missing row.
    public let profileFunction: String?
    /// The database functions that callers may call.
    public let functions: [String]
    /// The Edge Functions that callers may call.
    public let edgeFunctions: [String]
}
