/// The directories of desktop files (XDG Base Directory 0.8, and the specifications of MIME applications and menus).
public struct DesktopPlaces: Equatable, Sendable {
    /// `$XDG_DATA_HOME/applications`: the user's own `.desktop` files.
    public let applications: String
    /// Directories with `.desktop` files, the user's own first.
    public let allApplications: [String]
    /// The user's `mimeapps.list` files, highest priority first. They need not exist.
    public let ownLists: [String]
    /// All `mimeapps.list` files, highest priority first.
    public let allLists: [String]
    /// `$XDG_CONFIG_HOME/mimeapps.list`, to which a user's choice is written.
    public var mainList: String { main }

    private let main: String

    /// - Parameter environment: returns a variable's value; nil or empty if it is not set.
    /// - Returns: nil if neither a home directory nor the XDG variables are set.
    public init?(environment: (String) -> String?) {
        func directory(_ name: String, _ usual: String) -> String? {
            // The specification says that a relative path is ignored.
            if let path = environment(name), path.hasPrefix("/") { return path }
            return environment("HOME").flatMap { $0.hasPrefix("/") ? "\($0)/\(usual)" : nil }
        }
        func directories(_ name: String, _ usual: String) -> [String] {
            let stated = environment(name) ?? ""
            return (stated.isEmpty ? usual : stated).split(separator: ":").map(String.init).filter { $0.hasPrefix("/") }
        }
        guard let config = directory("XDG_CONFIG_HOME", ".config"),
            let data = directory("XDG_DATA_HOME", ".local/share")
        else { return nil }
        let desktops = (environment("XDG_CURRENT_DESKTOP") ?? "").split(separator: ":").map { $0.lowercased() }
        let names = desktops.filter { !$0.contains("/") }.map { "\($0)-mimeapps.list" } + ["mimeapps.list"]
        func lists(_ directories: [String]) -> [String] {
            directories.flatMap { directory in names.map { "\(directory)/\($0)" } }
        }
        let dataDirectories = directories("XDG_DATA_DIRS", "/usr/local/share:/usr/share")
        applications = "\(data)/applications"
        allApplications = ([data] + dataDirectories).map { "\($0)/applications" }
        main = "\(config)/mimeapps.list"
        ownLists = lists([config]) + lists(["\(data)/applications"])
        allLists = lists([config] + directories("XDG_CONFIG_DIRS", "/etc/xdg")) + lists(allApplications)
    }
}
