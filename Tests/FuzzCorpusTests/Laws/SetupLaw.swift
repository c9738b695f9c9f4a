import Adapters

/// The list of what `ringback setup` wrote, as it rests in the user's home.
enum SetupLaw {
    static func check(_ bytes: [UInt8]) throws {
        guard var entries = SetupEntries(reading: bytes) else { return }
        try hold("what is written is read as the same", SetupEntries(reading: entries.bytes) == entries)
        let former = entries
        let isNew = !entries.remove(link: "/a")
        entries.add(link: "/a")
        try hold("an entry is there once", entries.remove(link: "/a") && !entries.remove(link: "/a"))
        try hold("the others stay", !isNew || entries == former)
        entries.add(file: "/a/b/c", in: ["/a", "/a/b"])
        try hold(
            "a file is there once, with its directories",
            entries.remove(file: "/a/b/c") == ["/a/b", "/a"] && entries.remove(file: "/a/b/c") == nil)
    }
}
