// swift-tools-version: 6.2
import PackageDescription

/// The rules every Swift target is built with. Warnings are errors in debug builds, where developers and tests live;
/// a newer compiler's new warning must not keep a user from a release build.
let strict: [SwiftSetting] = [
    .strictMemorySafety(),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error, .when(configuration: .debug)),
]

/// The wings: the folders of `Sources`, each with its targets. `Tests` has the same.
let wings: [String: [String]] = [
    "Base": ["RingbackBase", "Terminal", "CLinux", "CErasedHeap"],
    "Cryptography": ["Cryptography", "COpenSSL"],
    "Network": ["CurlTransport", "CCurl", "LocalHTTP", "CallbackListener", "SignInPage"],
    "OAuth": ["OAuth", "SupabaseAuth"],
    "Vault": ["SessionVault"],
    "Broker": ["BrokerCore", "OAuthSignIn", "SupabaseSignIn", "DeepLinks", "KeptFiles"],
    "Desktop": ["Desktop", "DesktopNotices", "SchemeRegistration", "CSystemd"],
    "Hosts": ["SharedVault", "RowDatabase", "PostgresClient", "CPostgres"],
    "Socket": ["RingbackAPI", "RingbackClient", "APIServer", "Records"],
    "Tools": ["Adapters", "Confinement", "MCPBridge", "ringback-relay"],
    "Configuration": ["Configuration"],
    "Daemon": ["ringbackd"],
    "CommandLine": ["ringback"],
    "Sandbox": ["Sandbox", "ringback-sandbox"],
]

/// The folder of a target in `Sources` or `Tests`.
func folder(_ root: String, of target: String, named name: String? = nil) -> String {
    let wing = wings.first { $0.value.contains(target) }?.key
    return [root, wing, name ?? target].compactMap { $0 }.joined(separator: "/")
}

func library(_ name: String, _ dependencies: [Target.Dependency] = []) -> Target {
    .target(
        name: name, dependencies: dependencies, path: folder("Sources", of: name), swiftSettings: strict)
}

/// The wrapper of a C library.
func wrapper(_ name: String) -> Target { .target(name: name, path: folder("Sources", of: name)) }

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    // `BrokerTestSupport` stands beside the tests that it is for.
    let tested = name == "BrokerTestSupport" ? "BrokerCore" : String(name.dropLast("Tests".count))
    return .testTarget(
        name: name, dependencies: dependencies, path: folder("Tests", of: tested, named: name), swiftSettings: strict)
}

let log: Target.Dependency = .product(name: "Logging", package: "swift-log")
let lifecycle: Target.Dependency = .product(name: "ServiceLifecycle", package: "swift-service-lifecycle")
let signals: Target.Dependency = .product(name: "UnixSignals", package: "swift-service-lifecycle")
let arguments: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")

/// Dependencies of dependencies, of which each version is exactly one too. The package manager warns of a package that no
/// target uses, so a test target, whose executable has them in it anyway, depends on them.
let pinned: [Target.Dependency] = [
    .product(name: "DequeModule", package: "swift-collections"),
    .product(name: "AsyncAlgorithms", package: "swift-async-algorithms"),
]

/// `ringback` starts in less than twice the time of `/bin/true` because nothing is left to the dynamic linker, and because Swift's
/// runtime does not look for its backtrace program in eight places at each start (see CLinux.c). Freed memory is zeroed
/// by functions that the linker puts in place of the C library's (see CErasedHeap.c). It is not position independent: the
/// 50,000 relocations of a static-pie write to 150 pages more, which is half of a start.
let staticExecutable: (swift: [SwiftSetting], linker: [LinkerSetting]) = (
    [.unsafeFlags(["-static-executable"], .when(configuration: .release))],
    [
        .unsafeFlags(
            [
                "-static-executable", "-Xlinker", "--wrap=swift_copyAuxiliaryExecutablePath",
                "-Xlinker", "--wrap=free", "-Xlinker", "--wrap=realloc",
            ],
            .when(configuration: .release))
    ]
)

/// Whatever the dynamic linker has filled in is read-only before the first line of the program runs.
let hardened: [LinkerSetting] = [
    .unsafeFlags(["-Xlinker", "-z", "-Xlinker", "now"], .when(configuration: .release))
]

let package = Package(
    name: "ringback",
    products: [
        .executable(name: "ringbackd", targets: ["ringbackd"]),
        .executable(name: "ringback", targets: ["ringback"]),
        .executable(name: "ringback-relay", targets: ["ringback-relay"]),
        .executable(name: "ringback-sandbox", targets: ["ringback-sandbox"]),
        .library(name: "RingbackClient", targets: ["RingbackClient"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", exact: "2.13.0"),
        // What the packages above depend on (`pinned`).
        .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
        .package(url: "https://github.com/apple/swift-async-algorithms", exact: "1.1.4"),
    ],
    targets: [
        // Level 0: what the C libraries show, and values without behaviour.
        wrapper("CCurl"),
        .systemLibrary(name: "COpenSSL", path: folder("Sources", of: "COpenSSL"), providers: [.apt(["libssl-dev"])]),
        wrapper("CLinux"),
        wrapper("CErasedHeap"),
        wrapper("CSystemd"),
        wrapper("CPostgres"),
        library("RingbackBase"),
        library("RingbackAPI", ["RingbackBase"]),
        // Level 1
        library("Cryptography", ["COpenSSL", "RingbackBase"]),
        library("CurlTransport", ["CCurl", "RingbackBase"]),
        library("LocalHTTP", ["CLinux", "RingbackBase", lifecycle]),
        library("RingbackClient", ["RingbackAPI", "RingbackBase", "CLinux"]),
        library("Desktop", ["CLinux", "CSystemd", "COpenSSL", "Cryptography", "RingbackBase"]),
        library("PostgresClient", ["CPostgres", "CLinux", "RingbackBase"]),
        library("Terminal", ["RingbackBase"]),
        library("SchemeRegistration", ["RingbackBase"]),
        library("Records", ["CLinux", "RingbackBase"]),
        library("Adapters", ["RingbackBase"]),
        library("Confinement", ["CLinux"]),
        // Level 2
        library("MCPBridge", ["RingbackClient", "RingbackBase", "Terminal"]),
        library("OAuth", ["Cryptography", "RingbackBase"]),
        library("SignInPage", ["Cryptography", "RingbackBase"]),
        library(
            "CallbackListener",
            ["SignInPage", "LocalHTTP", "RingbackBase", "Cryptography", lifecycle]
        ),
        library(
            "Sandbox",
            ["LocalHTTP", "RingbackBase", "Cryptography"]
        ),
        library("SessionVault", ["Cryptography", "RingbackBase"]),
        // Level 3
        library("SupabaseAuth", ["OAuth", "Cryptography", "RingbackBase"]),
        library("SharedVault", ["SessionVault", "Cryptography", "RingbackBase"]),
        // Level 4
        library("RowDatabase", ["SharedVault", "PostgresClient", "RingbackBase"]),
        library(
            "Configuration",
            ["MCPBridge", "OAuth", "SupabaseAuth", "PostgresClient", "RingbackBase"]
        ),
        library(
            "BrokerCore",
            ["SessionVault", "Cryptography", "RingbackBase", log]
        ),
        // Level 5: what stands on the broker beside its API.
        library("DeepLinks", ["BrokerCore", "RingbackBase"]),
        library("DesktopNotices", ["BrokerCore", "Desktop", "RingbackBase", "Terminal"]),
        library(
            "KeptFiles",
            ["BrokerCore", "SessionVault", "Adapters", "CLinux", "Cryptography", "RingbackBase"]
        ),
        library(
            "OAuthSignIn",
            ["BrokerCore", "OAuth", "SessionVault", "Cryptography", "RingbackBase"]
        ),
        library(
            "SupabaseSignIn",
            ["BrokerCore", "SignInPage", "SupabaseAuth", "OAuth", "SessionVault", "Cryptography", "RingbackBase"]
        ),
        // Level 6
        library(
            "APIServer",
            [
                "BrokerCore", "OAuthSignIn", "SupabaseSignIn", "DeepLinks", "KeptFiles", "MCPBridge", "SupabaseAuth",
                "Records", "RingbackAPI", "LocalHTTP", "SessionVault", "SharedVault", "RingbackBase",
            ]
        ),
        // Level 7: the executables, the only places where parts are joined.
        .executableTarget(
            name: "ringbackd",
            dependencies: [
                "Adapters", "APIServer", "BrokerCore", "CallbackListener", "CErasedHeap", "CLinux", "Configuration",
                "CurlTransport", "DeepLinks", "Desktop", "DesktopNotices", "RingbackBase", "KeptFiles",
                "OAuthSignIn", "SupabaseSignIn", "Cryptography", "PostgresClient", "RowDatabase", "SharedVault",
                "LocalHTTP", "MCPBridge", "OAuth", "Records", "RingbackClient", "SessionVault", "Terminal", log,
                lifecycle, signals,
            ],
            path: folder("Sources", of: "ringbackd"),
            swiftSettings: strict,
            linkerSettings: hardened
        ),
        .executableTarget(
            name: "ringback",
            dependencies: [
                "Adapters", "Confinement", "MCPBridge", "RingbackClient", "RingbackAPI", "SchemeRegistration",
                "RingbackBase", "Terminal", "CErasedHeap", "CLinux", arguments,
            ],
            path: folder("Sources", of: "ringback"),
            swiftSettings: strict + staticExecutable.swift,
            linkerSettings: staticExecutable.linker
        ),
        // Only this program and the daemon have libcurl in them: `ringback` starts within a millisecond.
        .executableTarget(
            name: "ringback-relay",
            dependencies: [
                "MCPBridge", "CurlTransport", "LocalHTTP", "RingbackClient", "RingbackAPI", "OAuth", "Cryptography",
                "RingbackBase", "CErasedHeap", "CLinux",
            ],
            path: folder("Sources", of: "ringback-relay"),
            swiftSettings: strict,
            linkerSettings: hardened
        ),
        .executableTarget(
            name: "ringback-sandbox",
            dependencies: ["Sandbox", "LocalHTTP", "RingbackBase", arguments, lifecycle, signals, log],
            path: folder("Sources", of: "ringback-sandbox"),
            swiftSettings: strict,
            linkerSettings: hardened
        ),
        // For `make bench` alone.
        .executableTarget(
            name: "engine-server", dependencies: ["LocalHTTP", "RingbackBase"], path: "Benchmarks/engine",
            swiftSettings: strict),
        // What several test targets use.
        .target(name: "TestSupport", dependencies: ["RingbackBase"], path: "Tests/TestSupport", swiftSettings: strict),
        tests("CErasedHeapTests", ["CErasedHeap"]),
        tests("RingbackBaseTests", ["RingbackBase"]),
        tests("RingbackAPITests", ["RingbackAPI", "RingbackBase"]),
        tests("CryptographyTests", ["TestSupport", "Cryptography", "RingbackBase"]),
        tests("CurlTransportTests", ["TestSupport", "CurlTransport", "RingbackBase"]),
        tests(
            "LocalHTTPTests",
            ["TestSupport", "LocalHTTP", "RingbackBase", "CLinux", lifecycle, log] + pinned
        ),
        tests("RingbackClientTests", ["RingbackClient", "RingbackAPI", "RingbackBase"]),
        tests("DesktopTests", ["Desktop", "RingbackBase", "CLinux"]),
        tests("PostgresClientTests", ["TestSupport", "PostgresClient", "RingbackBase"]),
        tests(
            "RowDatabaseTests",
            [
                "TestSupport", "RowDatabase", "SharedVault", "PostgresClient", "SessionVault", "Cryptography",
                "RingbackBase",
            ]
        ),
        tests("AdaptersTests", ["Adapters", "RingbackBase"]),
        tests("ConfinementTests", ["TestSupport", "Confinement", "CLinux"]),
        tests("TerminalTests", ["RingbackBase", "Terminal"]),
        tests("MCPBridgeTests", ["MCPBridge", "RingbackBase", "Terminal"]),
        tests("SchemeRegistrationTests", ["SchemeRegistration", "RingbackBase"]),
        tests(
            "DeepLinksTests",
            ["BrokerTestSupport", "DeepLinks", "BrokerCore", "OAuthSignIn", "OAuth", "SessionVault", "RingbackBase"]
        ),
        tests("DesktopNoticesTests", ["DesktopNotices", "BrokerCore", "OAuthSignIn", "Desktop", "RingbackBase"]),
        tests("RecordsTests", ["Records", "RingbackBase", "CLinux"]),
        tests(
            "OAuthTests",
            ["TestSupport", "OAuth", "Cryptography", "RingbackBase"]
        ),
        tests(
            "SupabaseAuthTests",
            ["SupabaseAuth", "OAuth", "Cryptography", "RingbackBase"]
        ),
        tests(
            "CallbackListenerTests",
            [
                "TestSupport", "CallbackListener", "SignInPage", "LocalHTTP", "RingbackBase", "Cryptography", "CLinux",
                lifecycle,
            ]
        ),
        tests("SignInPageTests", ["SignInPage", "RingbackBase"]),
        tests(
            "SandboxTests",
            ["Sandbox", "LocalHTTP", "RingbackBase", "Cryptography"]
        ),
        tests(
            "SharedVaultTests",
            [
                "TestSupport", "BrokerTestSupport", "SharedVault", "SessionVault", "BrokerCore", "OAuthSignIn",
                "Cryptography", "RingbackBase",
            ]
        ),
        tests("SessionVaultTests", ["SessionVault", "Cryptography", "RingbackBase", "CLinux"]),
        tests(
            "ConfigurationTests",
            ["TestSupport", "Configuration", "MCPBridge", "SupabaseAuth", "RingbackBase", "OAuth"]
        ),
        // A broker with a fake provider, vault and clock, for the tests of what stands on it. It has no tests.
        tests(
            "BrokerTestSupport",
            ["TestSupport", "BrokerCore", "OAuthSignIn", "OAuth", "SessionVault", "Cryptography", "RingbackBase"]
        ),
        tests(
            "BrokerCoreTests",
            [
                "TestSupport", "BrokerTestSupport", "BrokerCore", "OAuthSignIn", "OAuth", "SessionVault",
                "Cryptography", "RingbackBase",
            ]
        ),
        tests(
            "OAuthSignInTests",
            [
                "TestSupport", "BrokerTestSupport", "OAuthSignIn", "BrokerCore", "OAuth", "SessionVault",
                "Cryptography", "RingbackBase",
            ]
        ),
        tests(
            "SupabaseSignInTests",
            [
                "TestSupport", "SupabaseSignIn", "OAuthSignIn", "BrokerCore", "BrokerTestSupport", "OAuth",
                "SupabaseAuth", "SessionVault", "Cryptography", "RingbackBase",
            ]
        ),
        tests(
            "APIServerTests",
            [
                "TestSupport", "BrokerTestSupport", "APIServer", "BrokerCore", "OAuthSignIn", "SupabaseSignIn",
                "KeptFiles", "DeepLinks", "Records", "RingbackAPI", "LocalHTTP", "OAuth", "SupabaseAuth",
                "SessionVault", "SharedVault", "Cryptography", "RingbackBase", "CLinux",
            ]
        ),
        // The laws of the fuzz targets, over their corpora.
        tests(
            "FuzzCorpusTests",
            [
                "LocalHTTP", "RingbackClient", "Records", "OAuth", "SupabaseAuth", "SessionVault", "Configuration",
                "Adapters", "MCPBridge", "BrokerCore", "DeepLinks", "KeptFiles", "SchemeRegistration", "SignInPage",
                "RingbackBase", "Cryptography", "PostgresClient", "RowDatabase", "SharedVault", "Terminal",
            ]
        ),
        // The real executables over real sockets.
        tests(
            "HouseTests",
            [
                "TestSupport", "ringbackd", "ringback", "ringback-relay", "ringback-sandbox", "RingbackClient",
                "RingbackAPI", "RingbackBase", "CLinux", "Cryptography",
            ]
        ),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .c17
)
