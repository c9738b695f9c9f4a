import Testing

/// What each target may import. A line that is missing here is a refusal; what is imported against the rules all the same
/// stands in ``LayoutDebts``.
private let allowed: [String: Set<String>] = [
    "RingbackBase": [],
    "RingbackAPI": ["RingbackBase"], "Terminal": ["RingbackBase"],
    "SchemeRegistration": ["RingbackBase"], "Adapters": ["RingbackBase"], "Confinement": ["CLinux"],
    "Cryptography": ["COpenSSL", "RingbackBase"],
    "CurlTransport": ["CCurl", "RingbackBase"],
    "LocalHTTP": ["CLinux", "RingbackBase", "ServiceLifecycle"],
    "RingbackClient": ["RingbackAPI", "RingbackBase", "CLinux"],
    "Desktop": ["CLinux", "CSystemd", "COpenSSL", "Cryptography", "RingbackBase"],
    "PostgresClient": ["CPostgres", "CLinux", "RingbackBase"],
    "MCPBridge": ["RingbackClient", "RingbackBase", "Terminal"],
    "OAuth": ["Cryptography", "RingbackBase"],
    "SupabaseAuth": ["OAuth", "Cryptography", "RingbackBase"],
    "SignInPage": ["Cryptography", "RingbackBase"],
    "CallbackListener": ["SignInPage", "LocalHTTP", "RingbackBase", "Cryptography", "ServiceLifecycle"],
    "Sandbox": ["LocalHTTP", "RingbackBase", "Cryptography"],
    "SessionVault": ["Cryptography", "RingbackBase"],
    "SharedVault": ["SessionVault", "Cryptography", "RingbackBase"],
    "RowDatabase": ["SharedVault", "PostgresClient", "RingbackBase"],
    "Records": ["CLinux", "RingbackBase"],
    "Configuration": ["MCPBridge", "OAuth", "SupabaseAuth", "PostgresClient", "RingbackBase"],
    "BrokerCore": ["SessionVault", "Cryptography", "RingbackBase"],
    "OAuthSignIn": ["BrokerCore", "OAuth", "SessionVault", "Cryptography", "RingbackBase"],
    "SupabaseSignIn": [
        "BrokerCore", "SignInPage", "SupabaseAuth", "OAuth", "SessionVault", "Cryptography", "RingbackBase",
    ],
    "DeepLinks": ["BrokerCore", "RingbackBase"],
    "DesktopNotices": ["BrokerCore", "Desktop", "RingbackBase", "Terminal"],
    "KeptFiles": ["BrokerCore", "SessionVault", "Adapters", "CLinux", "Cryptography", "RingbackBase"],
    "APIServer": [
        "BrokerCore", "OAuthSignIn", "SupabaseSignIn", "DeepLinks", "KeptFiles", "MCPBridge", "SupabaseAuth", "Records",
        "RingbackAPI", "LocalHTTP", "SessionVault", "SharedVault", "RingbackBase",
    ],
    "ringback": [
        "Adapters", "Confinement", "MCPBridge", "RingbackClient", "RingbackAPI", "SchemeRegistration", "RingbackBase",
        "Terminal", "CErasedHeap", "CLinux", "ArgumentParser",
    ],
    "ringback-relay": [
        "MCPBridge", "CurlTransport", "LocalHTTP", "RingbackClient", "RingbackAPI", "OAuth", "Cryptography",
        "RingbackBase", "CErasedHeap", "CLinux",
    ],
    "ringback-sandbox": [
        "Sandbox", "LocalHTTP", "RingbackBase", "ArgumentParser", "ServiceLifecycle", "UnixSignals", "Logging",
    ],
]
/// Where parts are joined: these may import everything below them, but no full Foundation either.
private let joints: Set<String> = ["ringbackd"]
private let system: Set<String> = ["FoundationEssentials", "Synchronization", "Glibc", "Dispatch"]

/// The layers, from the highest to the lowest. No target imports one of a layer above its own.
private let layers: [Set<String>] = [
    ["ringbackd", "ringback", "ringback-relay", "ringback-sandbox"],
    ["APIServer"],
    ["OAuthSignIn", "SupabaseSignIn"],
    ["DeepLinks", "DesktopNotices", "KeptFiles"],
    ["BrokerCore", "Configuration", "RowDatabase"],
    ["SharedVault"],
    ["OAuth", "SupabaseAuth", "SessionVault", "Records", "Sandbox", "MCPBridge"],
    [
        "CurlTransport", "LocalHTTP", "CallbackListener", "SignInPage", "Cryptography", "RingbackClient",
        "Desktop", "PostgresClient", "Terminal", "SchemeRegistration", "Adapters", "Confinement",
    ],
    ["RingbackBase", "RingbackAPI", "CLinux", "CCurl", "CErasedHeap", "COpenSSL", "CPostgres", "CSystemd"],
]

private let mostLines = (type: 600, actor: 800)

@Suite struct `The layout of the sources` {
    private let tree: SourceTree

    init() throws { tree = try SourceTree.project.get() }

    @Test(arguments: allowed.keys.sorted()) func `a target imports only what it may`(target: String) throws {
        let mayImport = try #require(allowed[target]).union(system).union(LayoutDebts.imports[target] ?? [])
        for file in tree.files(of: target) {
            #expect(file.source.imports.subtracting(mayImport).isEmpty, "\(file.path)")
        }
    }

    @Test func `the rules name what is imported, and nothing else`() {
        for (target, named) in allowed {
            let imported = tree.files(of: target).reduce(into: Set<String>()) { $0.formUnion($1.source.imports) }
            #expect(imported.subtracting(system) == named.union(LayoutDebts.imports[target] ?? []), "\(target)")
        }
    }

    @Test func `docs/architecture.md has a row for each wing, with its targets and the wings that it uses`() throws {
        let wings = try SourceTree.wings()
        let table = try Document(path: "docs/architecture.md").tableRows
        let rows = table.filter { $0.count == 4 && wings[$0[0]] != nil }
        #expect(rows.map { $0[0] }.sorted() == wings.keys.sorted())
        for row in rows {
            let targets = try #require(wings[row[0]])
            #expect(Set(Document.codeSpans(in: row[1])) == targets, "\(row[0])")
            let imported = tree.files.filter { targets.contains($0.target) }
                .reduce(into: Set<String>()) { $0.formUnion($1.source.imports) }
            let used = wings.filter { $0.key != row[0] && !$0.value.isDisjoint(with: imported) }.keys.sorted()
            let listed = row[3].split(separator: ", ").map(String.init)
            #expect(listed == (used.isEmpty ? ["nothing"] : used), "\(row[0])")
        }
    }

    @Test func `every Swift target has its rules and its layer`() {
        #expect(tree.targets == Set(allowed.keys).union(joints))
        #expect(tree.targets.isSubset(of: layers.reduce([]) { $0.union($1) }))
        #expect(allowed["Sandbox"]?.isDisjoint(with: ["OAuth", "SupabaseAuth"]) == true)
        #expect(allowed["BrokerCore"]?.isDisjoint(with: ["OAuth", "SupabaseAuth", "RingbackAPI"]) == true)
    }

    @Test func `only the local server's engine polls sockets`() {
        let polling = tree.files.filter { $0.source.lines.contains { $0.contains("epoll_") } }
        #expect(Set(polling.map(\.target)) == ["LocalHTTP"])
    }

    @Test func `imports point down, without a cycle`() throws {
        let imports = Dictionary(grouping: tree.files, by: \.target).mapValues { files in
            files.reduce(into: Set<String>()) { $0.formUnion($1.source.imports) }.intersection(tree.targets)
        }
        for (target, imported) in imports {
            let layer = try #require(layers.firstIndex { $0.contains(target) })
            let above = layers[..<layer].reduce(into: Set<String>()) { $0.formUnion($1) }
            #expect(imported.isDisjoint(with: above), "\(target)")
        }
        // What imports nothing that is left is taken away, until nothing is left.
        var left = imports
        while let next = left.first(where: { $0.value.isDisjoint(with: left.keys) })?.key { left[next] = nil }
        #expect(left.isEmpty, "\(left)")
    }

    @Test func `an import that is a debt is still there`() {
        for (target, debts) in LayoutDebts.imports {
            let imported = tree.files(of: target).reduce(into: Set<String>()) { $0.formUnion($1.source.imports) }
            let paid = debts.subtracting(imported)
            #expect(paid.isEmpty, "\(target): take it off LayoutDebts.imports")
        }
    }

    @Test func `full Foundation is imported nowhere, so no ICU comes in`() {
        for file in tree.files { #expect(!file.source.imports.contains("Foundation"), "\(file.path)") }
    }

    @Test func `the protocol targets have nothing asynchronous`() {
        for file in tree.files(of: "OAuth") + tree.files(of: "SupabaseAuth") {
            #expect(!file.source.lines.contains { $0.contains(" async") }, "\(file.path)")
        }
    }

    @Test func `a task is started in one function of the broker`() {
        let starters = tree.files(of: "BrokerCore").filter { $0.text.contains("= Task {") }
        #expect(starters.map(\.name) == ["Work"])
    }

    @Test func `a type has at most 600 lines of code over all its extensions, an actor 800`() {
        let sizes = tree.types.filter { $0.value.lines > ($0.value.isActor ? mostLines.actor : mostLines.type) }
        expect(sizes.mapValues(\.lines), isWithin: LayoutDebts.types, "LayoutDebts.types")
    }

    /// Nothing breaks a rule but the debts, by no more than they say; and a debt that is paid, or for a tenth, is taken off.
    private func expect(
        _ found: [String: Int], isWithin debts: [String: Int], _ list: String,
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        for (name, count) in found.sorted(by: { $0.key < $1.key }) {
            let most = debts[name] ?? 0
            #expect(count <= most, "\(name) has \(count); \(list) allows \(most)", sourceLocation: sourceLocation)
            #expect(
                count * 10 > most * 9, "\(name) has only \(count) now: say so in \(list)",
                sourceLocation: sourceLocation)
        }
        let paid = Set(debts.keys).subtracting(found.keys)
        #expect(paid.isEmpty, "paid: take it off \(list)", sourceLocation: sourceLocation)
    }

    @Test func `the reader sees code, strings, comments and types for what they are`() {
        let source = SourceText(
            ##"""
            import A
            // import B
            public import struct Deep
            /* a /* nested */ comment { */ actor One {
                let text = "a { brace \(call("}")) // no comment"

                // nothing
                struct Two { let x = 1 }
                class func made() {}
            }
            extension One: P {
                let long = """
                    import C
                    { \(text)

                    """
                let raw = #"a "quote" { \(no) \#(yes("{"))"#
            }
            enum Three<T> where T: P {}
            """##)
        #expect(source.imports == ["A", "struct"])
        #expect(
            source.parts.map { "\($0.keyword) \($0.name) \($0.lines)" } == [
                "actor One 4", "struct One.Two 1", "extension One 7", "enum Three 1",
            ])
    }
}
