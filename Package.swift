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

let package = Package(
  name: "sandboxctl",
  targets: [
    .systemLibrary(
      name: "CArchive", pkgConfig: "libarchive", providers: [.apt(["libarchive-dev"])]),
    .systemLibrary(name: "CZstd", pkgConfig: "libzstd", providers: [.apt(["libzstd-dev"])]),
    .systemLibrary(name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
    .systemLibrary(name: "CYAML", pkgConfig: "yaml-0.1", providers: [.apt(["libyaml-dev"])]),
    .target(name: "CLinux"),
    .target(name: "SystemIO", dependencies: ["CLinux"], swiftSettings: strict),
    .target(
      name: "Codecs", dependencies: ["CArchive", "CZstd", "CSodium", "CYAML"],
      swiftSettings: strict),
    .target(name: "SandboxModel", dependencies: ["SystemIO"], swiftSettings: common),
    .executableTarget(
      name: "microbench", dependencies: ["SystemIO"], path: "Benchmarks/Microbench",
      swiftSettings: common),
    .target(
      name: "TestSupport", dependencies: ["SystemIO"], path: "Tests/TestSupport",
      swiftSettings: common),
    .testTarget(
      name: "SystemIOTests", dependencies: ["SystemIO", "TestSupport"], swiftSettings: common),
    .testTarget(name: "CodecsTests", dependencies: ["Codecs", "TestSupport"], swiftSettings: common),
    .testTarget(
      name: "SandboxModelTests", dependencies: ["SandboxModel", "SystemIO", "TestSupport"],
      swiftSettings: common),
  ],
  swiftLanguageModes: [.v6]
)
