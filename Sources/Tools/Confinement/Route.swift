/// How a path leads to a file: its real path, and the symbolic links on the way.
struct Route {
    /// If there is nothing, where it would be.
    let end: String
    /// False also for links that lead in a circle.
    private(set) var exists = true
    /// Each by the real path of its folder.
    private(set) var links: [String] = []

    /// As the kernel has it.
    private static let mostLinks = 40

    /// - Parameter path: absolute.
    init(_ path: String) {
        var (real, rest) = ("", Route.parts(path))
        while let part = rest.popLast() {
            if part == ".." { real = Path.folder(of: real) }
            if part == "." || part == ".." { continue }
            let next = "\(real)/\(part)"
            if case .link(let target)? = Path(next).kind, links.count < Route.mostLinks {
                links.append(next)
                if target.hasPrefix("/") { real = "" }
                rest += Route.parts(target)
            } else {
                real = next
            }
        }
        switch Path(real).kind {
        case .file, .folder: break
        case .link, nil: exists = real.isEmpty
        }
        end = real.isEmpty ? "/" : real
    }

    /// The last one first.
    private static func parts(_ path: String) -> [String] { path.split(separator: "/").reversed().map(String.init) }
}
