internal import SandboxModel
internal import SystemIO

/// An open zip archive with a checked directory. Reading fails if the file has changed.
final class ZipFile: Sendable {
  let file: Descriptor
  let entries: [ZipEntry]
  let fault: PackageFault
  let size: UInt64
  private let status: FileStatus

  /// Opens an archive given as a descriptor and checks its directory.
  init(
    _ file: consuming Descriptor, limits: PackageLimits, fault: PackageFault
  ) throws(ModelError) {
    let status = try Self.status(of: file)
    let directory = try ZipDirectory(of: file, size: status.size, limits: limits, fault: fault)
    entries = directory.entries
    size = status.size
    self.status = status
    self.fault = fault
    self.file = file
  }

  /// Throws if the archive was written to since it was opened.
  func checkUnchanged() throws(ModelError) {
    let now = try Self.status(of: file)
    guard now.size == status.size, now.modified == status.modified, now.changed == status.changed
    else { throw fault.changed(fault.path) }
  }

  private static func status(of file: borrowing Descriptor) throws(ModelError) -> FileStatus {
    do {
      return try file.status()
    } catch {
      throw ModelError(package: error)
    }
  }
}
