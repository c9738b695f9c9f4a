internal import StrictJSON

/// `default = "NAME"`: the account that commands use if they name none.
public struct DefaultAccount: Sendable, Equatable {
    public let name: String
    public let source: ConfigurationSource

    /// Reports an account that does not exist.
    func mistakes(knowing accounts: some Collection<String>) -> [ConfigurationError] {
        guard !accounts.contains(name) else { return [] }
        let nearest = NearestWord.find(for: name, among: accounts).map { "; did you mean \($0)?" } ?? ""
        return [
            ConfigurationError(
                file: source.file, line: source.line, key: "default",
                message: "names an account that does not exist\(nearest)")
        ]
    }

    /// The member of the report's JSON.
    var json: JSON { ["account": .string(name), "source": source.json] }
}
