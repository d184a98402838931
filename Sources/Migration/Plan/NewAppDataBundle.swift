internal import Codecs
internal import DeviceTransaction
package import SandboxModel
package import SystemIO

/// An `.xcappdata` bundle to create: a directory with the data of one app as `AppData`, and
/// `AppDataInfo.plist`, which names the app. Xcode installs it on a device ("Replace Container…").
package struct NewAppDataBundle: Sendable {
  /// The path, absolute, without links above the bundle itself.
  package let path: ByteString
  /// The directory of the data in it.
  package var data: ByteString { path.appending(Self.dataName) }

  private static let dataName: ByteString = "AppData"
  private static let infoName: ByteString = "AppDataInfo.plist"

  /// Returns the bundle to create at a path, or nil if an entry exists there or the path does not
  /// end with `.xcappdata`.
  ///
  /// - Throws: `failed` if the directory above does not exist.
  package init?(at path: ByteString) throws(OperationError) {
    let named = path.components.last ?? ""
    guard Self.isNamed(named), named.nameFault == nil else { return nil }
    do throws(SystemError) {
      let above = try Directory.open(resolved: Host.realPath(path.dirname))
      if try above.statusIfPresent(named) != nil { return nil }
      self.path = above.path.appending(named)
    } catch { throw OperationError(error) }
  }

  /// Whether a path has the name of a bundle.
  package static func isNamed(_ path: ByteString) -> Bool {
    path.components.last?.hasSuffix(".xcappdata") ?? false
  }

  /// Whether a device is such a bundle.
  package static func isBundle(_ device: Device) -> Bool {
    device.layout == .coreSimulator && device.containers.map(\.path) == [dataName]
  }

  /// Creates the bundle with an empty container.
  ///
  /// - Parameters:
  ///   - app: The bundle identifier of the app.
  ///   - version: The version of the app whose data it gets, if known.
  ///   - build: The build, if known.
  /// - Throws: `failed` if it cannot be created; then nothing of it remains.
  package func make(
    of app: BundleIdentifier, version: ByteString?, build: ByteString?
  ) throws(OperationError) {
    let info = try Self.info(of: app, version: version, build: build)
    do throws(SystemError) {
      let above = try Directory.open(resolved: path.parent)
      let name = path.lastComponent ?? ""
      try above.createInherited(name, permissions: 0o755)
      do throws(SystemError) {
        try fill(above.directory(name), info)
        try above.sync()
      } catch {
        try? above.removeTree(name)
        throw error
      }
    } catch { throw OperationError(error) }
  }

  private func fill(_ bundle: borrowing Directory, _ info: [UInt8]) throws(SystemError) {
    let file = try bundle.create(Self.infoName, permissions: 0o644)
    try file.write(info)
    try file.sync()
    try file.close()
    try bundle.inheritOwner(Self.infoName)
    try bundle.createInherited(Self.dataName, permissions: 0o755)
    try bundle.sync()
  }

  private static func info(
    of app: BundleIdentifier, version: ByteString?, build: ByteString?
  ) throws(OperationError) -> [UInt8] {
    let values: [(String, ByteString?)] = [
      ("CFBundleIdentifier", app.bytes), ("CFBundleShortVersionString", version),
      ("CFBundleVersion", build),
    ]
    let members = values.compactMap { key, value in
      value?.utf8.map { PropertyList.Member(key, .string($0)) }
    }
    do throws(CodecError) {
      return try PropertyList.dictionary(members).xml()
    } catch {
      throw OperationError(
        .failed, code: .limitExceeded, "write", subject: infoName,
        reason: ByteString(error.reason).description, hint: "migrate to a device instead")
    }
  }

  /// Removes the program's own directory from the complete bundle, unless an interrupted operation
  /// needs it, because the bundle is for another program.
  package func finish() {
    guard (try? InterruptedOperation.all(on: path))?.isEmpty == true,
      let bundle = try? Directory.open(resolved: path)
    else { return }
    try? bundle.removeTree(OwnNames.directory)
  }

  /// Removes the bundle if a failed migration has put nothing into it.
  package func removeIfEmpty() {
    guard let data = try? Directory.open(resolved: data), (try? data.names())?.isEmpty == true,
      (try? InterruptedOperation.all(on: path))?.isEmpty == true,
      let above = try? Directory.open(resolved: path.parent)
    else { return }
    try? above.removeTree(path.lastComponent ?? "")
  }
}
