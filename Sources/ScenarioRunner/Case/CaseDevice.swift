internal import DeviceDiscovery
internal import DeviceTransaction
internal import PolicyEngine
internal import SandboxModel
internal import Scenario
internal import SystemIO

/// The copy of a device in the directory of a case. A restore to a new device adds another one,
/// which is then the current one.
struct CaseDevice {
  /// The directory of the case, outside which nothing is changed.
  private let home: ByteString
  private let layout: Layout
  /// The root of the current device.
  private(set) var root: ByteString
  /// The number of the current device.
  private var number = 1

  /// Copies a device into the directory of a case.
  ///
  /// - Throws: `ModelError` if there is no device; `OperationError` if an operation on it was
  ///   interrupted, or if the layout of the copy leads out of it.
  init(
    of source: ByteString, layout wanted: Layout?, in home: ByteString,
    isStopping: @escaping () -> Bool
  ) throws {
    let original = try Device.find(root: source, layout: wanted)
    if !(try InterruptedOperation.all(on: original.root)).isEmpty {
      throw OperationError(
        .failed, code: .recoveryRequired, "copy the device", subject: source,
        reason: "an operation on it was interrupted",
        hint: "run 'sandboxctl recover --root \(ShellWord.text(source))' first")
    }
    (self.home, layout) = (home, original.layout)
    root = Self.place(of: layout, number: 1, in: home, named: original.root.lastComponent)
    let from = try Directory.open(resolved: original.root)
    try TreeCopy.run(
      from, to: try Directory.make(resolved: root, permissions: 0o700),
      excluding: TreeCopy.isExcluded, isStopping: isStopping)
    _ = try find()
  }

  /// Returns the path of a device in the directory of a case. The layouts of a home directory are
  /// recognized by its last names.
  private static func place(
    of layout: Layout, number: Int, in home: ByteString, named name: ByteString?
  ) -> ByteString {
    let base = home.appending(ByteString("device-\(number)"))
    switch layout {
    case .flatpak where name == "app": return base.appending(".var/app")
    case .snap where name == "snap": return base.appending("snap")
    case .folder: return base.appending(name ?? "folder")
    default: return base
    }
  }

  /// Finds the current device.
  ///
  /// - Throws: `OperationError` if one of its containers is outside the directory of the case,
  ///   where links of the device's layout can lead.
  func find() throws -> Device {
    let device = try Device.find(root: root, layout: layout)
    for container in device.containers where !container.absolutePath.isWithin(home) {
      throw OperationError(
        .failed, code: .invalidTarget, "copy the device",
        reason: "its container '\(container.logicalPrefix)' is outside the device's directory, at "
          + "'\(container.absolutePath)', and would not be a copy",
        hint: "use a device without links in its layout, or a copy of it")
    }
    return device
  }

  /// Creates a device on which the current device's apps are installed and have no data, as a
  /// platform installs them before it restores their data, and makes it the current one.
  mutating func makeNew() throws {
    let device = try find()
    number += 1
    let new = Self.place(of: layout, number: number, in: home, named: root.lastComponent)
    let containers = Set(
      device.containers.filter { $0.kind != .bundle }
        .map { $0.absolutePath.relative(to: device.root) })
    try TreeCopy.run(
      try Directory.open(resolved: device.root),
      to: try Directory.make(resolved: new, permissions: 0o700),
      excluding: { $0 == OwnNames.directory || containers.contains($0) })
    root = new
  }
}
