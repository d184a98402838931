internal import CEmbedded

/// The built-in policy files, which are in this directory.
package enum BuiltinPolicies {
  /// A file: its name, its bytes, and the values of its first keys.
  package struct File: Sendable {
    package let name: String
    package let bytes: [UInt8]
    /// The policy's name.
    package let policy: String
    /// The name of its layout, or nil for none.
    package let layout: String?
    /// The policies that it extends.
    package let bases: [String]

    init(_ policy: String, _ file: ce_file, layout: String? = nil, extends bases: [String] = []) {
      name = "\(policy).yaml"
      bytes = Array(UnsafeBufferPointer(start: file.bytes, count: file.count))
      self.policy = policy
      self.layout = layout
      self.bases = bases
    }
  }

  /// The policies, each after those that it extends.
  package static let files: [File] = [
    File("common", ce_common_yaml()),
    File("apple", ce_apple_yaml(), extends: ["common"]),
    File(
      "ios", ce_ios_yaml(), layout: "coresimulator", extends: ["common", "apple"]),
    File("flatpak", ce_flatpak_yaml(), layout: "flatpak", extends: ["common"]),
    File("macos", ce_macos_yaml(), layout: "macos", extends: ["common", "apple"]),
    File("snap", ce_snap_yaml(), layout: "snap", extends: ["common"]),
    File("android", ce_android_yaml(), layout: "android", extends: ["common"]),
    File("systemd", ce_systemd_yaml(), layout: "systemd", extends: ["common"]),
    File("xdg", ce_xdg_yaml(), layout: "xdg", extends: ["common"]),
    File("everything", ce_everything_yaml(), layout: "folder"),
  ]

  /// The migration tables, `migrations/NAME.yaml`, with their names.
  package static let migrations = named("migrations/", ce_migrations)

  /// The scenarios, `scenarios/NAME.yaml`, with their names.
  package static let scenarios = named("scenarios/", ce_scenarios)

  private static func named(
    _ directory: String, _ list: (UnsafeMutablePointer<Int>) -> UnsafePointer<ce_named_file>?
  ) -> [(name: String, bytes: [UInt8])] {
    var count = 0
    let files = UnsafeBufferPointer(start: list(&count), count: count)
    return files.map { (name: directory + String(cString: $0.name), bytes: bytes($0.file)) }
  }

  /// The data of inter-app rules: the uniform types, and the URL schemes and extension points of
  /// the system.
  package static let interAppTypes = bytes(ce_interapp_types_yaml())
  package static let interAppSchemes = bytes(ce_interapp_schemes_yaml())
  package static let interAppExtensions = bytes(ce_interapp_extensions_yaml())

  private static func bytes(_ file: ce_file) -> [UInt8] {
    Array(UnsafeBufferPointer(start: file.bytes, count: file.count))
  }

  /// Returns the files of a policy and of those that it extends, in the order of `files`.
  ///
  /// - Parameters:
  ///   - name: The policy's name, or nil for the policy of the layout.
  /// - Returns: The files, or an empty array if there is no such policy.
  package static func files(policy name: String?, layout: String) -> [File] {
    guard let last = files.first(where: { name == nil ? $0.layout == layout : $0.policy == name })
    else { return [] }
    return files.filter { $0.policy == last.policy || last.bases.contains($0.policy) }
  }
}
