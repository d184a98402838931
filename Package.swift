// swift-tools-version: 6.2
import PackageDescription

let common: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
  .treatAllWarnings(as: .error),
]
let strict = common + [.strictMemorySafety()]
// `make test` builds everything in the release configuration: the tests start the program thousands of
// times, and a debug build spends most of its time on the command line. The tests themselves are not
// optimized, which would double the time of the build.
let tests =
  common + [
    .unsafeFlags(
      ["-Onone", "-no-whole-module-optimization", "-enable-batch-mode"],
      .when(configuration: .release))
  ]
// With Swift's libraries in separate files, as tests have them, the program would take one and a
// half times as long to start. The two libraries are named by modules that were compiled for such
// files. No library looks for the program's own symbols, of which there are thirty thousand.
let program: [LinkerSetting] = [
  .unsafeFlags(
    [
      "-static-stdlib", "-l_FoundationCShims", "-l_FoundationCollections",
      "-Xlinker", "--no-export-dynamic",
    ],
    .when(configuration: .release))
]
// The largest module has no inner loops: optimized for size, it compiles in two thirds of the time
// and starts no later.
let small: [SwiftSetting] = [.unsafeFlags(["-Osize"], .when(configuration: .release))]

let package = Package(
  name: "sandboxctl",
  products: [
    .executable(name: "sandboxctl", targets: ["sandboxctl"])
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2")
  ],
  targets: [
    .target(name: "CLoader"),
    .target(name: "CArchive", dependencies: ["CLoader"]),
    .target(name: "CBzip2", dependencies: ["CLoader"]),
    .target(name: "CLzma", dependencies: ["CLoader"]),
    .target(name: "CCrypto", dependencies: ["CLoader"]),
    .target(name: "CSQLite", dependencies: ["CLoader"]),
    .target(name: "CFuse", dependencies: ["CLoader"]),
    .target(name: "CCurl", dependencies: ["CLoader"]),
    .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
    .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
    .systemLibrary(name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
    .systemLibrary(name: "CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
    .target(name: "CLinux"),
    .target(name: "CBlake2b"),
    // `#embed` is C23.
    .target(name: "CEmbedded", cSettings: [.unsafeFlags(["-std=c23"])]),
    .target(name: "SystemIO", dependencies: ["CLinux"], swiftSettings: strict),
    .target(
      name: "Codecs",
      dependencies: [
        "CArchive", "CBlake2b", "CBzip2", "CCrypto", "CLzma", "CSodium", "CYAML", "CZlib", "CZstd",
      ],
      swiftSettings: strict),
    .target(
      name: "SandboxModel", dependencies: ["Codecs", "SystemIO"], swiftSettings: common),
    .target(
      name: "DeviceDiscovery", dependencies: ["Codecs", "SandboxModel", "SystemIO"],
      swiftSettings: common),
    .target(
      name: "PolicyEngine", dependencies: ["Codecs", "SandboxModel"],
      swiftSettings: common),
    .target(
      name: "BuiltinPolicies", dependencies: ["CEmbedded"], path: "policies",
      exclude: [
        "apple.yaml", "common.yaml", "everything.yaml", "flatpak.yaml", "ios.yaml", "macos.yaml",
        "interapp", "scenarios",
        "android.yaml", "migration.schema.json", "migrations", "policy.schema.json", "snap.yaml",
        "systemd.yaml", "xdg.yaml",
        "scenario.schema.json",
      ],
      swiftSettings: common),
    .target(
      name: "RecoverScript", dependencies: ["CEmbedded"], path: "Tools",
      exclude: [
        "check-imports.py", "check-labels.py", "check-man.sh", "check-sizes.py", "check-words.py",
        "deps.sh", "make-man.py", "memory-disk.sh", "peers.sh", "peers.txt", "readme-tour.py",
        "recover.py", "run-tests.py", "scale.py", "scale_growth.py", "scale_index.py",
        "scale_memory.py", "soak.py", "soak_databases.py", "soak_fleet.py", "soak_prune.py",
        "soak_stores.py", "soak_trees.py", "structure.py", "tour.sh",
      ],
      swiftSettings: common),
    .target(
      name: "ArchiveStore", dependencies: ["Codecs", "RecoverScript", "SystemIO"],
      swiftSettings: common),
    .target(
      name: "DatabaseCapture", dependencies: ["Codecs", "SystemIO"],
      swiftSettings: common),
    .target(
      name: "SampleDevice", dependencies: ["Codecs", "SandboxModel", "SystemIO"],
      swiftSettings: common),
    .target(
      name: "DeviceScan",
      dependencies: [
        "ArchiveStore", "Codecs", "DatabaseCapture", "DeviceDiscovery", "PolicyEngine",
        "SandboxModel", "SystemIO",
      ],
      swiftSettings: common),
    .target(
      name: "Backup",
      dependencies: [
        "ArchiveStore", "Codecs", "DatabaseCapture", "DeviceDiscovery", "DeviceScan",
        "DeviceTransaction", "PolicyEngine", "SandboxModel", "SystemIO",
      ],
      swiftSettings: common),
    .target(
      name: "DeviceTransaction",
      dependencies: [
        "ArchiveStore", "Codecs", "DeviceDiscovery", "DeviceScan", "PolicyEngine", "SandboxModel",
        "SystemIO",
      ],
      swiftSettings: common),
    .target(
      name: "Restore",
      dependencies: [
        "ArchiveStore", "Codecs", "DatabaseCapture", "DeviceDiscovery", "DeviceScan",
        "DeviceTransaction", "PolicyEngine", "SandboxModel", "SystemIO",
      ],
      swiftSettings: common),
    .target(
      name: "AppPackages",
      dependencies: ["CArchive", "Codecs", "DeviceDiscovery", "SandboxModel", "SystemIO"],
      swiftSettings: strict),
    .target(
      name: "Migration",
      dependencies: [
        "AppPackages", "ArchiveStore", "Codecs", "DatabaseCapture", "DeviceDiscovery", "DeviceScan",
        "DeviceTransaction", "PolicyEngine", "SandboxModel", "SystemIO",
      ],
      swiftSettings: common),
    .target(
      name: "AppUpdate",
      dependencies: [
        "AppPackages", "ArchiveStore", "Codecs", "DatabaseCapture", "DeviceDiscovery", "DeviceScan",
        "DeviceTransaction", "PolicyEngine", "Restore", "SandboxModel", "SystemIO",
      ],
      swiftSettings: common),
    .target(
      name: "Audit",
      dependencies: [
        "Codecs", "DeviceDiscovery", "DeviceScan", "InterApp", "PolicyEngine", "SandboxModel",
        "SystemIO",
      ],
      swiftSettings: common),
    .target(
      name: "Purge",
      dependencies: [
        "ArchiveStore", "DatabaseCapture", "DeviceScan", "DeviceTransaction", "PolicyEngine",
        "SandboxModel", "SystemIO",
      ],
      swiftSettings: common),
    .target(
      name: "SnapshotQueries",
      dependencies: ["ArchiveStore", "Codecs", "DatabaseCapture", "PolicyEngine", "SystemIO"],
      swiftSettings: common),
    .target(
      name: "Retention", dependencies: ["ArchiveStore", "Codecs", "SystemIO"],
      swiftSettings: common),
    .target(
      name: "Interchange",
      dependencies: [
        "ArchiveStore", "Codecs", "DatabaseCapture", "DeviceDiscovery", "SandboxModel", "SystemIO",
        "CSQLite",
      ],
      swiftSettings: common),
    .target(
      name: "InterApp",
      dependencies: ["ArchiveStore", "Codecs", "DeviceTransaction", "SandboxModel", "SystemIO"],
      swiftSettings: common),
    .target(
      name: "RemoteStorage", dependencies: ["ArchiveStore", "CCurl", "Codecs", "SystemIO"],
      swiftSettings: common),
    .target(
      name: "Mount", dependencies: ["ArchiveStore", "CFuse", "Codecs", "SystemIO"],
      swiftSettings: common),
    .target(
      name: "Scenario", dependencies: ["Codecs", "PolicyEngine", "SandboxModel", "SystemIO"],
      swiftSettings: common),
    .target(
      name: "ScenarioRunner",
      dependencies: [
        "AppPackages", "AppUpdate", "ArchiveStore", "Audit", "Backup", "Codecs", "DatabaseCapture",
        "DeviceDiscovery", "DeviceScan", "DeviceTransaction", "InterApp", "PolicyEngine", "Purge",
        "Restore", "SampleDevice", "SandboxModel", "Scenario", "SystemIO",
      ],
      swiftSettings: common),
    .target(
      name: "SandboxCommands",
      dependencies: [
        "AppPackages", "AppUpdate", "ArchiveStore", "Audit", "Backup", "BuiltinPolicies", "Codecs",
        "DeviceDiscovery", "DeviceScan", "DeviceTransaction", "InterApp", "Interchange",
        "Migration", "Mount", "PolicyEngine", "Purge", "RemoteStorage", "Restore", "Retention",
        "SampleDevice", "SandboxModel", "Scenario", "ScenarioRunner", "SnapshotQueries", "SystemIO",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: common + small),
    .executableTarget(
      name: "sandboxctl", dependencies: ["SandboxCommands"], swiftSettings: common,
      linkerSettings: program),
    .executableTarget(
      name: "walkbench", dependencies: ["SystemIO"], path: "Benchmarks/WalkBench",
      swiftSettings: common),
    .executableTarget(
      name: "classifybench",
      dependencies: ["BuiltinPolicies", "PolicyEngine", "SandboxModel", "SystemIO"],
      path: "Benchmarks/ClassifyBench", swiftSettings: common),
    .target(
      name: "TestSupport", dependencies: ["ArchiveStore", "Codecs", "SystemIO"],
      path: "Tests/TestSupport",
      swiftSettings: common),
    .target(name: "AllocationCount", path: "Tests/AllocationCount"),
    .testTarget(
      name: "CommandTests",
      dependencies: [
        "ArchiveStore", "BuiltinPolicies", "Codecs", "DeviceDiscovery", "DeviceTransaction",
        "PolicyEngine", "SandboxModel", "SystemIO", "TestSupport",
      ],
      exclude: ["Programs", "Snapshots"], swiftSettings: tests),
    .testTarget(
      name: "SandboxCommandsTests",
      dependencies: [
        "ArchiveStore", "Codecs", "SandboxCommands", "SandboxModel", "SystemIO", "TestSupport",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "AuditTests",
      dependencies: [
        "Audit", "BuiltinPolicies", "Codecs", "DeviceDiscovery", "DeviceScan", "InterApp",
        "PolicyEngine", "SandboxModel", "SystemIO", "TestSupport",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "RetentionTests",
      dependencies: ["ArchiveStore", "Codecs", "Retention", "SystemIO", "TestSupport"],
      swiftSettings: tests),
    .testTarget(
      name: "SystemIOTests", dependencies: ["CLinux", "SystemIO", "TestSupport"],
      swiftSettings: tests),
    .testTarget(
      name: "CodecsTests", dependencies: ["Codecs", "TestSupport"], swiftSettings: tests),
    .testTarget(
      name: "DeviceDiscoveryTests",
      dependencies: [
        "AppPackages", "Codecs", "DeviceDiscovery", "SandboxModel", "SystemIO", "TestSupport",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "PolicyEngineTests",
      dependencies: ["BuiltinPolicies", "Codecs", "PolicyEngine", "SandboxModel", "TestSupport"],
      swiftSettings: tests),
    .testTarget(
      name: "ArchiveStoreTests",
      dependencies: ["ArchiveStore", "Codecs", "SystemIO", "TestSupport"],
      swiftSettings: tests),
    .testTarget(
      name: "DatabaseCaptureTests", dependencies: ["DatabaseCapture", "SystemIO", "TestSupport"],
      exclude: ["Programs"],
      swiftSettings: tests),
    .testTarget(
      name: "SampleDeviceTests",
      dependencies: ["DeviceDiscovery", "SampleDevice", "SandboxModel", "SystemIO", "TestSupport"],
      exclude: ["Golden"], swiftSettings: tests),
    .testTarget(
      name: "AppPackagesTests",
      dependencies: ["AppPackages", "DeviceDiscovery", "SandboxModel", "SystemIO", "TestSupport"],
      swiftSettings: tests),
    .testTarget(
      name: "InterchangeTests",
      dependencies: [
        "ArchiveStore", "Codecs", "DeviceDiscovery", "Interchange", "SandboxModel", "SystemIO",
        "TestSupport",
        "CSQLite",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "MigrationTests",
      dependencies: [
        "AppPackages", "ArchiveStore", "BuiltinPolicies", "Codecs", "DeviceDiscovery", "DeviceScan",
        "DeviceTransaction", "Migration", "PolicyEngine", "SandboxModel", "SystemIO", "TestSupport",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "InterAppTests",
      dependencies: [
        "BuiltinPolicies", "Codecs", "InterApp", "SandboxModel", "SystemIO", "TestSupport",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "RemoteStorageTests",
      dependencies: ["ArchiveStore", "Codecs", "RemoteStorage", "SystemIO", "TestSupport"],
      exclude: ["Programs"],
      swiftSettings: tests),
    .testTarget(
      name: "MountTests",
      dependencies: ["ArchiveStore", "Codecs", "Mount", "SystemIO", "TestSupport"],
      swiftSettings: tests),
    .testTarget(
      name: "ScenarioTests", dependencies: ["PolicyEngine", "Scenario", "SystemIO", "TestSupport"],
      swiftSettings: tests),
    .testTarget(
      name: "ScenarioRunnerTests",
      dependencies: [
        "BuiltinPolicies", "Codecs", "InterApp", "PolicyEngine", "SampleDevice", "SandboxModel",
        "Scenario", "ScenarioRunner", "SystemIO", "TestSupport",
      ],
      swiftSettings: tests),
    .testTarget(
      name: "OperationTests",
      dependencies: [
        "AllocationCount", "AppPackages", "AppUpdate", "ArchiveStore", "Backup", "BuiltinPolicies",
        "Codecs", "DeviceDiscovery", "DeviceScan", "DeviceTransaction",
        "Interchange",
        "PolicyEngine", "Purge", "RemoteStorage", "Restore", "SandboxModel", "SnapshotQueries",
        "SystemIO", "TestSupport",
      ],
      swiftSettings: tests),
  ],
  swiftLanguageModes: [.v6]
)

// The fuzzers: a program whose modules are all built with sanitizers, in a separate build directory
// (CONTRIBUTING.md, "Fuzzers"); otherwise tests that replay the corpus with the same targets.
let fuzzed: [Target.Dependency] = [
  "AppPackages", "ArchiveStore", "Backup", "BuiltinPolicies", "Codecs", "DatabaseCapture",
  "DeviceDiscovery", "InterApp", "Interchange", "Migration", "PolicyEngine", "RemoteStorage",
  "Restore", "SandboxModel", "Scenario", "SystemIO",
]
package.targets.append(
  Context.environment["SANDBOXCTL_FUZZ"] != nil
    ? .executableTarget(
      name: "fuzz", dependencies: fuzzed, path: "Fuzzers/Sources/fuzz",
      exclude: ["FuzzCorpusTests.swift"],
      swiftSettings: common + [.unsafeFlags(["-parse-as-library"])])
    : .testTarget(
      name: "FuzzTargetTests", dependencies: fuzzed, path: "Fuzzers/Sources/fuzz",
      exclude: ["Fuzz.swift"], swiftSettings: tests))
