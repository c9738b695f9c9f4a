internal import Glibc

/// The environment of the programs that we start: where the user's files and desktop are. Variables that change how
/// programs are loaded, traced or connected (`LD_*`, proxies, `SSLKEYLOGFILE`) are removed, and so are unknown ones,
/// which may hold secrets.
enum CleanEnvironment {
    private static let kept: Set<String> = [
        "PATH", "HOME", "USER", "LANG", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "SSH_AUTH_SOCK",
        "GPG_TTY", "GNUPGHOME", "PASSWORD_STORE_DIR",
    ]

    /// In addition for the helper: the address of the system bus, where logind is. Commands do not need it.
    private static let keptForHelper: Set<String> = ["DBUS_SYSTEM_BUS_ADDRESS"]

    /// In addition for programs with windows: how to connect to the user's desktop and which one it is; openers choose
    /// by that.
    private static let keptForApplications: Set<String> = [
        "XAUTHORITY", "BROWSER", "LANGUAGE", "SHELL", "LOGNAME", "DESKTOP_SESSION", "KDE_FULL_SESSION",
        "KDE_SESSION_VERSION", "GNOME_DESKTOP_SESSION_ID", "TZ",
    ]

    /// Our own environment, cleaned, as `NAME=value` lines.
    static func current(forHelper: Bool = false, forApplications: Bool = false) -> [String] {
        var lines: [String] = []
        var next = unsafe environ
        while let line = unsafe next.pointee {
            lines.append(unsafe String(cString: line))
            unsafe next += 1
        }
        return clean(lines, forHelper: forHelper, forApplications: forApplications)
    }

    /// Filters the lines. Without a PATH the usual one is added, so that programs can be found by name.
    static func clean(_ lines: [String], forHelper: Bool = false, forApplications: Bool = false) -> [String] {
        var result = lines.filter { line in
            guard let equals = line.firstIndex(of: "=") else { return false }
            let name = line[..<equals]
            return kept.contains(String(name)) || name.hasPrefix("XDG_")
                || forHelper && keptForHelper.contains(String(name))
                // The helper passes these variables on.
                || (forHelper || forApplications)
                    && (keptForApplications.contains(String(name)) || name.hasPrefix("LC_"))
        }
        if !result.contains(where: { $0.hasPrefix("PATH=") }) { result.append("PATH=/usr/local/bin:/usr/bin:/bin") }
        return result
    }
}
