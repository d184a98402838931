import Codecs
import DeviceDiscovery
import SandboxModel
import SystemIO
import TestSupport

/// A simulator device in a temporary directory, to which tests add apps and containers.
struct SimulatorDevice {
  let directory: TemporaryDirectory
  static let udid: ByteString = "8B2A61F9-0C2B-4B2F-9D6E-0C5B5A1D7E11"
  static let metadataName = ".com.apple.mobile_container_manager.metadata.plist"

  init() throws {
    directory = try TemporaryDirectory()
    try directory.propertyList(
      "device.plist",
      .of([
        ("UDID", .name(Self.udid)), ("name", .string("iPhone 14")), ("state", .integer(1)),
        ("runtime", .string("com.apple.CoreSimulator.SimRuntime.iOS-16-4")),
      ]))
    try directory.makeDirectory("data/Containers/Data/Application")
  }

  static func path(_ kind: ContainerKind, _ uuid: String) -> String {
    let classes: [ContainerKind: String] = [
      .bundle: "Bundle/Application", .data: "Data/Application", .extension: "Data/PluginKitPlugin",
      .group: "Shared/AppGroup",
    ]
    return "data/Containers/\(classes[kind] ?? "")/\(uuid)"
  }

  private static let contentClasses: [ContainerKind: Int64] = [
    .bundle: 1, .data: 2, .extension: 4, .group: 7,
  ]

  /// Makes a container with metadata, or without if `identifier` is nil.
  func container(
    _ kind: ContainerKind, _ uuid: String, _ identifier: ByteString?, contentClass: Int64? = nil
  ) throws {
    let path = Self.path(kind, uuid)
    try directory.makeDirectory(path)
    guard let identifier else { return }
    try directory.propertyList(
      path + "/" + Self.metadataName,
      .of([
        ("MCMMetadataIdentifier", .name(identifier)),
        ("MCMMetadataUUID", .string("META-\(uuid)")),
        ("MCMMetadataContentClass", .integer(contentClass ?? Self.contentClasses[kind] ?? 0)),
      ]), isBinary: true)
  }

  /// Makes a bundle's container and returns the path of the bundle.
  @discardableResult
  func bundle(
    _ uuid: String, _ identifier: ByteString, name: String, metadata: ByteString? = nil,
    more: [(String, PropertyList)] = []
  ) throws -> String {
    try container(.bundle, uuid, metadata ?? identifier)
    let path = Self.path(.bundle, uuid) + "/\(name).app"
    try info(path, identifier, name: ByteString(name), more: more)
    return path
  }

  func info(
    _ path: String, _ identifier: ByteString, name: ByteString,
    more: [(String, PropertyList)] = []
  ) throws {
    try directory.propertyList(
      path + "/Info.plist",
      .of(
        [
          ("CFBundleIdentifier", .name(identifier)), ("CFBundleName", .name(name)),
          ("CFBundleShortVersionString", .string("1.2")), ("CFBundleVersion", .string("34")),
        ] + more))
  }

  func find() throws -> Device {
    try DeviceFinder(layout: nil, machineID: "machine", systemFlatpak: nil).find(directory.path)
  }
}

extension Device {
  func findings(_ code: Finding.Code) -> [Finding] { findings.filter { $0.code == code } }

  func container(at path: String) -> Container? { containers.first { $0.path == ByteString(path) } }

  var logicalPrefixes: [ByteString] { containers.map(\.logicalPrefix) }
}
