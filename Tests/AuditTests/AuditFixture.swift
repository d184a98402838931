import BuiltinPolicies
import Codecs
import DeviceDiscovery
import DeviceScan
import InterApp
import PolicyEngine
import SandboxModel
import SystemIO
import TestSupport

@testable import Audit

/// A simulator's device with one app, its bundle and its data, which a test fills.
struct AuditFixture {
  static let app = "org.example.app"
  static let prefix: ByteString = "apps/org.example.app/data"
  private static let data: ByteString =
    "tree/Containers/Data/Application/0A0A0A0A-0000-4000-8000-000000000001"
  private static let bundle: ByteString =
    "tree/Containers/Bundle/Application/0A0A0A0A-0000-4000-8000-000000000002"
  private static let group: ByteString =
    "tree/Containers/Shared/AppGroup/0A0A0A0A-0000-4000-8000-000000000003"

  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory("audit")
    try writeMetadata(Self.app, in: Self.data)
  }

  private func writeMetadata(_ identifier: String, in container: ByteString) throws {
    try write(
      .dictionary([.init("MCMMetadataIdentifier", .string(identifier))]),
      at: container.appending(".com.apple.mobile_container_manager.metadata.plist"))
  }

  private func write(_ list: PropertyList, at path: ByteString) throws {
    try directory.write(try list.xml(), at: path)
  }

  /// Writes a file of the given size in the app's data.
  func put(_ path: ByteString, bytes: Int = 10) throws {
    try put(path, content: [UInt8](repeating: 7, count: bytes))
  }

  func put(_ path: ByteString, content: [UInt8]) throws {
    try directory.write(content, at: Self.data.appending(path))
  }

  /// Writes a file in the container of a group.
  func putInGroup(_ path: ByteString) throws {
    try writeMetadata("group.org.example.app", in: Self.group)
    try directory.write([7], at: Self.group.appending(path))
  }

  /// Writes a file in the app's bundle.
  func putInBundle(_ path: ByteString, bytes: Int = 10) throws {
    try putInBundle(path, content: [UInt8](repeating: 7, count: bytes))
  }

  func putInBundle(_ path: ByteString, content: [UInt8]) throws {
    try directory.write(content, at: Self.bundle.appending("Example.app").appending(path))
  }

  /// Sets the modification times of files in the app's bundle to a number of days from now.
  func setModified(days: Int64, ofBundle paths: [ByteString]) throws {
    let bundle = directory.path(Self.bundle.appending("Example.app"))
    for path in paths {
      let above = try Directory.open(path: bundle.appending(path.parent))
      try above.setModified(
        Timestamp(seconds: Host.now().seconds + days * 86_400), of: path.lastComponent ?? "")
    }
  }

  /// Writes the Info.plist of the app, or of a bundle inside the app's bundle, with further
  /// members.
  func writeInfo(
    _ members: [PropertyList.Member] = [], of bundle: ByteString = "", build: String = "7",
    identifier: String = AuditFixture.app
  ) throws {
    let common: [PropertyList.Member] = [
      .init("CFBundleIdentifier", .string(identifier)), .init("CFBundleVersion", .string(build)),
      .init("CFBundleExecutable", .string("Example")),
    ]
    try writeList(.dictionary(common + members), in: bundle.appending("Info.plist"))
  }

  /// Writes a property list in the app's bundle.
  func writeList(_ list: PropertyList, in path: ByteString) throws {
    try write(list, at: Self.bundle.appending("Example.app").appending(path))
  }

  /// Writes the Info.plist of an extension of the app.
  func writeExtension(
    _ members: [PropertyList.Member], named name: ByteString = "PlugIns/Share.appex",
    build: String = "7"
  ) throws {
    try writeInfo(
      [.init("NSExtension", .dictionary(members))], of: name, build: build,
      identifier: Self.app + ".share")
  }

  /// Sets an attribute of an entry in the app's data.
  func mark(
    _ path: ByteString, _ name: ByteString = "com.apple.metadata:com_apple_backup_excludeItem"
  ) throws {
    try setMark(at: Self.data.appending(path), name)
  }

  func markInGroup(_ path: ByteString) throws {
    try setMark(
      at: Self.group.appending(path), "com.apple.metadata:com_apple_backup_excludeItem")
  }

  private func setMark(at path: ByteString, _ name: ByteString) throws {
    let above = try Directory.open(path: directory.path(path.parent))
    try above.attributes(of: path.lastComponent ?? "").set(
      ByteString("user.").concatenating(name), to: [1])
  }

  /// The absolute path of an entry in the app's data.
  func real(_ path: ByteString) -> ByteString { directory.path(Self.data.appending(path)) }

  func device() throws -> Device {
    try Device.find(root: directory.path("tree"), layout: .coreSimulator)
  }

  static func policy(_ version: String? = nil) throws -> CompiledPolicy {
    let library = PolicyLibrary(
      BuiltinPolicies.files.map { PolicySource(name: $0.name, bytes: $0.bytes, origin: .builtin) })
    return try library.compile(
      PolicyRequest(layout: .coreSimulator, osVersion: version.flatMap { OSVersion($0) }))
  }

  private static let newest = Result { try policy() }
  private static let types = Result {
    try TypeTable(reading: BuiltinPolicies.interAppTypes, name: "types.yaml")
  }

  /// Audits the device.
  ///
  /// - Parameter days: The number of days by which the clock is ahead.
  func audit(history: ChangeHistory? = nil, days: Int64 = 0) throws -> AuditReport {
    let scan = DeviceScan.run(
      try device(), policy: try Self.newest.get(),
      options: ScanOptions(destination: .unrestricted))
    return try DeviceAudit.run(
      scan, history: history,
      options: CommandOptions(device: " --root device", repository: " --repo repo"),
      now: Timestamp(seconds: Host.now().seconds + days * 86_400 + 60),
      types: { try Self.types.get() })
  }

  /// Returns the paths of a rule's findings, in the app's data or as logical paths.
  func paths(
    _ rule: AuditRule, history: ChangeHistory? = nil, days: Int64 = 0
  ) throws -> [ByteString] {
    try audit(history: history, days: days).findings.filter { $0.rule == rule }.map { found in
      found.path.isWithin(Self.prefix) ? found.path.relative(to: Self.prefix) : found.path
    }
  }
}
