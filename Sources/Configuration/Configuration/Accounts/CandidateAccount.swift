extension AccountConfiguration {
    /// Reads an account from text that is not in a file yet. The rules for a file in `accounts.d` apply.
    ///
    /// - Throws: all errors, with an empty file name.
    public static func read(
        _ name: String, in text: String, at place: ConfigurationPlace
    ) throws(ConfigurationErrors) -> AccountConfiguration {
        let document: TOMLDocument
        do throws(TOMLDocument.SyntaxError) {
            document = try TOMLDocument(parsing: Array(text.utf8))
        } catch {
            throw ConfigurationErrors([ConfigurationError(file: "", line: error.line, message: error.message)])
        }
        var check = KeyCheck(file: "", isDropIn: true)
        let root = TOMLTableReader(check.check(document.root, as: .file, at: []))
        let written = TOMLTableReader(document.root).table("accounts")?.node(name)
        guard let node = root.table("accounts")?.node(name) else {
            let missing = ConfigurationError(file: "", message: "has no account \(name)")
            throw ConfigurationErrors(check.errors.isEmpty ? [missing] : check.report)
        }
        var reader = AccountReader(
            AccountTable(
                name: name, node: node, unchecked: TOMLTableReader(written), place: place, isPrivateFile: true,
                check: check))
        guard let account = reader.read(), reader.account.check.errors.isEmpty else {
            throw ConfigurationErrors(reader.account.check.report)
        }
        return account
    }
}
