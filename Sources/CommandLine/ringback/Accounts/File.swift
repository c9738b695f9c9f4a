import Glibc
import RingbackClient

/// An account as a drop-in file beside the configuration: its text is written, renamed and removed here.
struct AccountFile {
    let directory: String
    let name: String
    /// The configuration file that it is beside.
    let configuration: String

    /// The account's file beside the configuration file.
    ///
    /// - Throws: if neither an option nor the environment names the configuration file.
    init(name: String, configuration stated: String?) throws(RingbackError) {
        let variable = SocketPlace.variable
        var file = stated ?? variable("RINGBACK_CONFIG") ?? ""
        if file.isEmpty {
            if let base = variable("XDG_CONFIG_HOME"), base.hasPrefix("/") {
                file = base + "/ringback/config.toml"
            } else if let home = variable("HOME"), home.hasPrefix("/") {
                file = home + "/.config/ringback/config.toml"
            } else {
                throw RingbackError(
                    "no_place", "There is no place for the configuration: set HOME, or name the file with --config.")
            }
        }
        self.configuration = file
        let folder = file.lastIndex(of: "/").map { String(file[..<$0]) } ?? "."
        directory = (folder.isEmpty ? "/" : folder) + "/accounts.d"
        self.name = name
    }

    var path: String { "\(directory)/\(name).toml" }
    /// The file that is checked before it takes effect.
    var candidate: CandidateFile { CandidateFile(for: path) }

    /// Writes the text where the check can read it, with no access for other users. Missing directories are made.
    func writeCandidate(_ text: String) throws(RingbackError) {
        try AccountFile.makeFolders(for: path)
        try candidate.write(Array(text.utf8))
    }

    /// Makes the folders in which a file is to be.
    static func makeFolders(for path: String) throws(RingbackError) {
        let directory = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        var parent = ""
        for part in directory.split(separator: "/", omittingEmptySubsequences: false) {
            parent += (parent.isEmpty && !directory.hasPrefix("/") ? "" : "/") + part
            if parent.hasPrefix("//") { parent.removeFirst() }
            if parent.isEmpty || parent == "/" { continue }
            guard unsafe mkdir(parent, 0o700) == 0 || errno == EEXIST else {
                throw CandidateFile.failure("make", parent)
            }
        }
    }

    /// Gives the candidate its final name.
    ///
    /// - Parameter replaces: a file of that name may exist and is replaced.
    func keep(replacing replaces: Bool = false) throws(RingbackError) {
        try candidate.keep(replacing: replaces)
        discard()
    }

    var exists: Bool { unsafe access(path, F_OK) == 0 }

    /// Removes the file durably.
    func remove() throws(RingbackError) {
        guard unsafe unlink(path) == 0 else { throw CandidateFile.failure("remove", path) }
        CandidateFile.syncFolder(of: path)
    }

    func discard() { candidate.discard() }
}

/// TOML in a form that every reader understands: one table, one line for each key.
struct AccountText {
    private(set) var text: String

    init(name: String) {
        // Always quoted: a bare name may not have dots.
        text = "# Written by ringback account add.\n[accounts.\(AccountText.quoted(name))]\n"
        self.name = AccountText.quoted(name)
    }

    private let name: String

    mutating func add(_ key: String, _ value: String?) {
        if let value { text += "\(key) = \(AccountText.quoted(value))\n" }
    }

    mutating func add(_ key: String, _ values: [String]) {
        guard !values.isEmpty else { return }
        text += "\(key) = [\(values.map(AccountText.quoted).joined(separator: ", "))]\n"
    }

    mutating func add(_ key: String, is value: Bool) { text += "\(key) = \(value)\n" }

    mutating func addTable(_ table: String, _ pairs: [(String, String?)]) {
        guard pairs.contains(where: { $0.1 != nil }) else { return }
        text += "\n[accounts.\(name).\(table)]\n"
        for (key, value) in pairs { add(key, value) }
    }

    /// A basic string; what TOML does not allow in one is escaped.
    static func quoted(_ value: String) -> String {
        var output = "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": output += "\\\""
            case "\\": output += "\\\\"
            case _ where scalar.value < 0x20 || scalar.value == 0x7F:
                let digits = String(scalar.value, radix: 16, uppercase: true)
                output += "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
            default: output.unicodeScalars.append(scalar)
            }
        }
        return output + "\""
    }
}
