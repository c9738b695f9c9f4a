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
    "Base": [
        "Secrets", "StrictJSON", "Encodings", "FilePaths", "HTTPMessages", "Terminal", "CLinux", "CErasedHeap",
    ],
    "Cryptography": ["Cryptography", "COpenSSL"],
    "Network": ["CurlTransport", "CCurl", "LocalHTTP", "CallbackListener", "SignInPage"],
    "OAuth": ["OAuth", "SupabaseAuth"],
    "Vault": ["SessionVault"],
    "Broker": ["BrokerCore", "OAuthSignIn", "SupabaseSignIn", "DeepLinks", "KeptFiles"],
    "Desktop": ["DesktopBus", "Launcher", "DesktopNotices", "SchemeRegistration", "CSystemd"],
    "Hosts": ["SharedVault", "RowDatabase", "PostgresClient", "CPostgres"],
    "Socket": ["RingbackAPI", "RingbackClient", "APIServer", "Records"],
    "Tools": ["Adapters", "MCPBridge", "ringback-relay"],
    "Configuration": ["Configuration"],
    "Daemon": ["ringbackd", "NetworkWatch"],
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
        library("Secrets"),
        library("StrictJSON"),
        library("Encodings"),
        library("FilePaths"),
        library("HTTPMessages", ["Encodings", "Secrets"]),
        library("RingbackAPI", ["StrictJSON"]),
        // Level 1
        library("Cryptography", ["COpenSSL", "Encodings", "Secrets"]),
        library("CurlTransport", ["CCurl", "HTTPMessages", "Secrets"]),
        library("LocalHTTP", ["CLinux", "HTTPMessages", lifecycle]),
        library("RingbackClient", ["RingbackAPI", "Encodings", "StrictJSON", "CLinux"]),
        library("DesktopBus", ["CSystemd", "COpenSSL", "Cryptography", "Encodings", "Secrets"]),
        library("PostgresClient", ["CPostgres", "CLinux", "Secrets"]),
        library("Launcher", ["CLinux", "DesktopBus", "Secrets", "StrictJSON"]),
        library("Terminal"),
        library("SchemeRegistration", ["HTTPMessages"]),
        library("Records", ["CLinux", "Encodings", "StrictJSON"]),
        library("NetworkWatch", ["CLinux"]),
        library("Adapters", ["Encodings", "HTTPMessages", "StrictJSON"]),
        // Level 2
        library("MCPBridge", ["RingbackClient", "HTTPMessages", "Encodings", "StrictJSON", "Terminal"]),
        library("OAuth", ["Cryptography", "Encodings", "HTTPMessages", "Secrets", "StrictJSON"]),
        library("SignInPage", ["Cryptography", "Encodings", "HTTPMessages", "Secrets"]),
        library(
            "CallbackListener",
            ["SignInPage", "LocalHTTP", "HTTPMessages", "Cryptography", "Secrets", "CLinux", lifecycle]
        ),
        library(
            "Sandbox",
            ["LocalHTTP", "HTTPMessages", "Cryptography", "Encodings", "Secrets", "StrictJSON"]
        ),
        library("SessionVault", ["Cryptography", "Encodings", "FilePaths", "Secrets", "StrictJSON"]),
        // Level 3
        library("SupabaseAuth", ["OAuth", "Cryptography", "Encodings", "HTTPMessages", "Secrets", "StrictJSON"]),
        library("SharedVault", ["SessionVault", "Cryptography", "Secrets", "StrictJSON"]),
        // Level 4
        library("RowDatabase", ["SharedVault", "PostgresClient", "SessionVault", "Secrets"]),
        library(
            "Configuration",
            [
                "MCPBridge", "OAuth", "SupabaseAuth", "PostgresClient", "Encodings", "FilePaths", "HTTPMessages",
                "Secrets", "StrictJSON",
            ]
        ),
        library(
            "BrokerCore",
            ["SessionVault", "Cryptography", "FilePaths", "HTTPMessages", "Secrets", "StrictJSON", log]
        ),
        // Level 5: what stands on the broker beside its API.
        library("DeepLinks", ["BrokerCore", "HTTPMessages", "Secrets", "StrictJSON"]),
        library("DesktopNotices", ["BrokerCore", "DesktopBus", "HTTPMessages", "StrictJSON", "Terminal"]),
        library(
            "KeptFiles",
            [
                "BrokerCore", "SessionVault", "Adapters", "CLinux", "Cryptography", "Encodings", "Secrets",
                "StrictJSON",
            ]
        ),
        library(
            "OAuthSignIn",
            ["BrokerCore", "OAuth", "SessionVault", "Cryptography", "HTTPMessages", "Secrets", "StrictJSON"]
        ),
        library(
            "SupabaseSignIn",
            [
                "BrokerCore", "SignInPage", "SupabaseAuth", "OAuth", "SessionVault", "Cryptography", "Encodings",
                "HTTPMessages", "Secrets", "StrictJSON",
            ]
        ),
        // Level 6
        library(
            "APIServer",
            [
                "BrokerCore", "OAuthSignIn", "SupabaseSignIn", "DeepLinks", "KeptFiles",
                "MCPBridge", "SupabaseAuth", "Records", "RingbackAPI", "LocalHTTP", "SessionVault", "SharedVault",
                "Encodings", "FilePaths", "HTTPMessages", "Secrets", "StrictJSON",
            ]
        ),
        // Level 7: the executables, the only places where parts are joined.
        .executableTarget(
            name: "ringbackd",
            dependencies: [
                "Adapters", "APIServer", "BrokerCore", "CallbackListener", "CErasedHeap", "CLinux",
                "Configuration",
                "CurlTransport", "DeepLinks", "DesktopBus", "DesktopNotices", "FilePaths", "KeptFiles", "Launcher",
                "OAuthSignIn", "SupabaseSignIn", "Cryptography", "PostgresClient", "RowDatabase", "SharedVault",
                "LocalHTTP", "MCPBridge", "NetworkWatch", "OAuth", "Records", "RingbackClient", "SessionVault",
                "StrictJSON", "Secrets", "HTTPMessages", "Terminal",
                log, lifecycle, signals,
            ],
            path: folder("Sources", of: "ringbackd"),
            swiftSettings: strict,
            linkerSettings: hardened
        ),
        .executableTarget(
            name: "ringback",
            dependencies: [
                "Adapters", "MCPBridge", "RingbackClient", "RingbackAPI", "SchemeRegistration", "Encodings",
                "FilePaths", "HTTPMessages", "Secrets", "StrictJSON", "Terminal", "CErasedHeap", "CLinux", arguments,
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
                "HTTPMessages", "Secrets", "StrictJSON", "CErasedHeap", "CLinux",
            ],
            path: folder("Sources", of: "ringback-relay"),
            swiftSettings: strict,
            linkerSettings: hardened
        ),
        .executableTarget(
            name: "ringback-sandbox",
            dependencies: ["Sandbox", "LocalHTTP", "Secrets", arguments, lifecycle, signals, log],
            path: folder("Sources", of: "ringback-sandbox"),
            swiftSettings: strict,
            linkerSettings: hardened
        ),
        // For `make bench` alone.
        .executableTarget(
            name: "engine-server", dependencies: ["LocalHTTP", "HTTPMessages"], path: "Benchmarks/engine",
            swiftSettings: strict),
        // What several test targets use.
        .target(name: "TestSupport", dependencies: ["StrictJSON"], path: "Tests/TestSupport", swiftSettings: strict),
        tests("CErasedHeapTests", ["CErasedHeap"]),
        tests("SecretsTests", ["Secrets"]),
        tests("StrictJSONTests", ["StrictJSON"]),
        tests("EncodingsTests", ["Encodings"]),
        tests("HTTPMessagesTests", ["HTTPMessages", "Secrets"]),
        tests("RingbackAPITests", ["RingbackAPI", "StrictJSON"]),
        tests("CryptographyTests", ["TestSupport", "Cryptography", "Encodings", "Secrets"]),
        tests("CurlTransportTests", ["TestSupport", "CurlTransport", "Encodings", "HTTPMessages", "Secrets"]),
        tests(
            "LocalHTTPTests",
            ["TestSupport", "LocalHTTP", "HTTPMessages", "CLinux", lifecycle, log] + pinned
        ),
        tests("RingbackClientTests", ["RingbackClient", "RingbackAPI", "StrictJSON"]),
        tests("DesktopBusTests", ["DesktopBus", "Secrets"]),
        tests("PostgresClientTests", ["TestSupport", "PostgresClient", "Secrets"]),
        tests(
            "RowDatabaseTests",
            ["TestSupport", "RowDatabase", "SharedVault", "PostgresClient", "SessionVault", "Cryptography", "Secrets"]
        ),
        tests("LauncherTests", ["Launcher", "DesktopBus", "Secrets", "StrictJSON", "CLinux"]),
        tests("AdaptersTests", ["Adapters", "HTTPMessages", "Secrets", "StrictJSON"]),
        tests("TerminalTests", ["Terminal"]),
        tests("MCPBridgeTests", ["MCPBridge", "HTTPMessages", "StrictJSON", "Terminal"]),
        tests("SchemeRegistrationTests", ["SchemeRegistration", "HTTPMessages"]),
        tests(
            "DeepLinksTests",
            [
                "BrokerTestSupport", "DeepLinks", "BrokerCore", "OAuthSignIn", "OAuth", "SessionVault", "HTTPMessages",
                "Secrets", "StrictJSON",
            ]
        ),
        tests("DesktopNoticesTests", ["DesktopNotices", "BrokerCore", "OAuthSignIn", "DesktopBus", "HTTPMessages"]),
        tests("RecordsTests", ["Records", "StrictJSON", "CLinux"]),
        tests("NetworkWatchTests", ["NetworkWatch", "CLinux"]),
        tests(
            "OAuthTests",
            ["TestSupport", "OAuth", "Cryptography", "Encodings", "HTTPMessages", "Secrets", "StrictJSON"]
        ),
        tests(
            "SupabaseAuthTests",
            ["SupabaseAuth", "OAuth", "Cryptography", "Encodings", "HTTPMessages", "Secrets", "StrictJSON"]
        ),
        tests(
            "CallbackListenerTests",
            [
                "TestSupport", "CallbackListener", "SignInPage", "LocalHTTP", "HTTPMessages", "Cryptography",
                "Encodings", "CLinux",
                lifecycle,
            ]
        ),
        tests("SignInPageTests", ["SignInPage", "HTTPMessages", "Secrets"]),
        tests(
            "SandboxTests",
            ["Sandbox", "LocalHTTP", "HTTPMessages", "Cryptography", "Encodings", "Secrets", "StrictJSON"]
        ),
        tests(
            "SharedVaultTests",
            [
                "TestSupport", "BrokerTestSupport", "SharedVault", "SessionVault", "BrokerCore", "OAuthSignIn",
                "Cryptography", "HTTPMessages", "Secrets", "StrictJSON",
            ]
        ),
        tests("SessionVaultTests", ["SessionVault", "Cryptography", "Secrets", "StrictJSON", "CLinux"]),
        tests(
            "ConfigurationTests",
            [
                "TestSupport", "Configuration", "MCPBridge", "SupabaseAuth", "FilePaths", "HTTPMessages", "OAuth",
                "Secrets",
                "StrictJSON",
            ]
        ),
        // A broker with a fake provider, vault and clock, for the tests of what stands on it. It has no tests.
        tests(
            "BrokerTestSupport",
            [
                "TestSupport", "BrokerCore", "OAuthSignIn", "OAuth", "SessionVault", "Cryptography", "Encodings",
                "HTTPMessages", "Secrets", "StrictJSON",
            ]
        ),
        tests(
            "BrokerCoreTests",
            [
                "TestSupport", "BrokerTestSupport", "BrokerCore", "OAuthSignIn", "OAuth", "SessionVault",
                "Cryptography", "Encodings", "HTTPMessages", "Secrets", "StrictJSON",
            ]
        ),
        tests(
            "OAuthSignInTests",
            [
                "TestSupport", "BrokerTestSupport", "OAuthSignIn", "BrokerCore", "OAuth", "SessionVault",
                "Cryptography", "Encodings", "HTTPMessages", "Secrets", "StrictJSON",
            ]
        ),
        tests(
            "SupabaseSignInTests",
            [
                "TestSupport", "SupabaseSignIn", "OAuthSignIn", "BrokerCore", "BrokerTestSupport", "OAuth",
                "SupabaseAuth", "SessionVault", "Cryptography", "Encodings", "HTTPMessages", "Secrets",
                "StrictJSON",
            ]
        ),
        tests(
            "APIServerTests",
            [
                "TestSupport", "BrokerTestSupport", "APIServer", "BrokerCore", "OAuthSignIn", "SupabaseSignIn",
                "KeptFiles", "DeepLinks", "Records", "RingbackAPI", "LocalHTTP", "OAuth", "SupabaseAuth",
                "SessionVault", "SharedVault",
                "Cryptography", "Encodings", "HTTPMessages", "Secrets", "StrictJSON", "CLinux",
            ]
        ),
        // The laws of the fuzz targets, over their corpora.
        tests(
            "FuzzCorpusTests",
            [
                "LocalHTTP", "RingbackClient", "Records", "OAuth", "SupabaseAuth", "SessionVault", "Configuration",
                "Adapters", "MCPBridge", "BrokerCore", "DeepLinks", "KeptFiles", "SchemeRegistration", "SignInPage",
                "HTTPMessages", "Secrets", "StrictJSON", "Cryptography", "Encodings", "PostgresClient", "RowDatabase",
                "SharedVault", "Terminal",
            ]
        ),
        // The real executables over real sockets.
        tests(
            "HouseTests",
            [
                "TestSupport", "ringbackd", "ringback", "ringback-relay", "ringback-sandbox", "RingbackClient",
                "RingbackAPI",
                "StrictJSON", "CLinux", "Cryptography", "Encodings",
            ]
        ),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .c17
)
