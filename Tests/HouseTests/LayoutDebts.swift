/// Where the sources do not keep their rules yet. These lists may only get shorter and their numbers smaller: whoever adds
/// to one has broken a rule, and what is paid must be taken off.
enum LayoutDebts {
    /// Imports that the layers do not allow, by target.
    static let imports: [String: Set<String>] = [:]

    /// Folders with more than 25 files of their own, and how many.
    static let folders: [String: Int] = [:]

    /// Types with more lines of code than a type may have, over all their extensions, and how many (to the next 50).
    static let types: [String: Int] = [:]

    /// Folders whose files repeat its name in theirs, and how many do.
    static let prefixes: [String: Int] = [:]

    /// Files of the broker, of the kinds of account and of the vault with strings of three words or more, and how many.
    static let sentences: [String: Int] = [
        // Not a sentence: the list of the words that name a page.
        "SupabaseSignIn/Page/PageSession.swift": 1,
        // Not sentences: the purposes of derived keys.
        "SessionVault/SealedFile.swift": 1,
        "SessionVault/KeySources/SystemdCredentialSource.swift": 1,
    ]
}
