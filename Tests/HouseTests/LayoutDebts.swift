/// Where the sources do not keep their rules yet. These lists may only get shorter and their numbers smaller: an addition
/// breaks a rule, and an entry that no longer applies is removed.
enum LayoutDebts {
    /// Imports that the layers do not allow, by target.
    static let imports: [String: Set<String>] = [:]

    /// Types with more lines of code than a type may have, over all their extensions, and how many (to the next 50).
    static let types = [
        // The routes of the imitation, an extension for each subject.
        "Sandbox.SupabaseProject": 1_300
    ]
}
