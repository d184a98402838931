import AppPackages
import DeviceDiscovery
import SystemIO

@testable import Migration

extension Target {
  /// The files that determine whether an app can use the migrated data.
  static let migrationTargets = [
    Target(name: "data-version", run: dataVersion),
    Target(name: "flatpak-access", run: flatpakAccess),
  ]

  /// `compatibility.ini` of Mozilla's programs, or `Last Version` of Chromium's. With the version
  /// in the second half of the input there are two versions, whose order must be consistent.
  @Sendable private static func dataVersion(_ bytes: [UInt8]) {
    for isMozilla in [true, false] {
      let texts = [bytes, Array(bytes[(bytes.count / 2)...])]
      let versions = texts.compactMap { DataVersion.stated(in: $0, isMozilla: isMozilla) }
      for version in versions {
        let text = version.version?.bytes.map(\.self) ?? []
        require((1...64).contains(text.count), "a version has \(text.count) bytes")
        require(text.first.map { (0x30...0x39).contains($0) } ?? false, "a version has no number")
        require(text.allSatisfy { $0 > 0x20 && $0 < 0x7f }, "a version cannot be shown")
        require(!version.isEarlier(than: version), "a version precedes itself")
      }
      if let first = versions.first, let last = versions.last {
        require(
          !(first.isEarlier(than: last) && last.isEarlier(than: first)),
          "two versions precede each other")
      }
    }
  }

  /// The metadata of a Flatpak. The access that the suggested command grants to some paths must be
  /// permitted afterwards.
  @Sendable private static func flatpakAccess(_ bytes: [UInt8]) {
    let list = KeyValueFile(bytes).value("filesystems", in: "Context")?.bytes.map(\.self) ?? []
    let entries = list.split(separator: UInt8(ascii: ";")).map { ByteString($0) }
    let paths: [ByteString] = [
      "/home/u/.config/x", "/home/u/Downloads/x", "/media/games", "/run/media/u/disk",
    ]
    let access = access(entries)
    let missing = paths.filter { !access.permits($0) }
    require(
      (access.overrideCommand(for: paths) == nil) == missing.isEmpty,
      "the command is not that for the paths that are missing")
    for path in paths where access.permits(path) {
      require(access.permits(path, writing: false), "what may be written cannot be read: \(path)")
    }
    let after = self.access(entries + missing)
    require(paths.allSatisfy { after.permits($0) }, "what was granted is not permitted")
  }

  private static func access(_ entries: [ByteString]) -> FlatpakAccess {
    FlatpakAccess(
      of: "a.b", home: "/home/u", filesystems: entries,
      userDirectories: ["download": "/home/u/Downloads"])
  }
}

/// The seeds of these targets.
enum MigrationSeeds {
  static let all: [(target: String, bytes: [UInt8])] = [
    ("data-version", Array(compatibility.utf8)), ("data-version", Array("128.0.6613.84".utf8)),
    ("flatpak-access", Array(metadata.utf8)),
  ]

  private static let compatibility =
    "[Compatibility]\nLastVersion=128.0.3_20240704121409/20240704121409\nLastOSABI=Linux_x86_64\n"

  private static let metadata = """
    [Application]
    name=a.b

    [Context]
    shared=network;
    filesystems=xdg-download/x:ro;~/.config:create;!host;/media;!/media/games;xdg-run/pipewire-0;

    """
}
