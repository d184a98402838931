import SandboxModel
import SystemIO
import TestSupport
import Testing

@testable import AppPackages

extension Package {
  /// Opens a package in a directory.
  static func open(
    _ bytes: [UInt8], in directory: TemporaryDirectory, limits: PackageLimits = PackageLimits()
  ) throws -> Package {
    try directory.write(bytes, at: "x.ipa")
    return try Package(opening: directory.path("x.ipa"), limits: limits)
  }

  /// Returns all entries with the contents of files, read in pieces.
  func contents(piece: Int = 1000) throws -> [(entry: PackageEntry, content: [UInt8])] {
    var found: [(PackageEntry, [UInt8])] = []
    var entries = try entries()
    var buffer = [UInt8](repeating: 0, count: piece)
    while let entry = try entries.next() {
      var content: [UInt8] = []
      while case let count = try entries.read(into: &buffer), count > 0 {
        content += buffer.prefix(count)
      }
      if case .file(let size) = entry.kind { #expect(UInt64(content.count) == size) }
      found.append((entry, content))
    }
    return found
  }
}

/// Returns the error of opening an archive and, if that succeeds, of unpacking it.
func refusal(
  of bytes: [UInt8], limits: PackageLimits = PackageLimits()
) throws -> ModelError? {
  let directory = try TemporaryDirectory("package")
  do {
    _ = try Package.open(bytes, in: directory, limits: limits).contents()
    return nil
  } catch let error as ModelError {
    return error
  }
}
