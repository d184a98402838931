import Foundation
package import SystemIO

/// The paths of all files of a real iOS device, from Shared's `fixtures/ios-paths`.
package enum RealDevicePaths {
  /// The shared material with the paths.
  package static let material = "fixtures/ios-paths/belkasoft-ctf6-ios-dev1.csv.zip"

  private static let member = "belkasoft-ctf6-ios-dev1.csv"

  /// Reads the list; paths are relative to the device's root.
  package static func load() throws -> [ByteString] {
    let list = try Program.run(
      "bsdtar", ["-xOf", Shared.path(material), member])
    guard list.code == 0 else { throw Program.Failure(description: "bsdtar: \(list.errors)") }
    let lines = list.output.components(separatedBy: "\r\n")
    return lines.dropFirst().filter { !$0.isEmpty }.map { ByteString(firstField(of: $0)) }
  }

  /// The distance between two paths of a sample.
  package static let stride = Sampling.stride(10)

  /// Returns the paths that name containers and apps, and a sample of the others; all in complete
  /// runs.
  package static func sample(of paths: [ByteString]) -> [ByteString] {
    let chosen = Set(Sampling.some(of: paths, stride, "files of the real device"))
    return paths.filter { path in
      let parts = path.components.suffix(2)
      return chosen.contains(path) || parts.last.map { naming.contains($0) } == true
        || parts.first == "Preferences"
    }
  }

  private static let naming: Set<ByteString> = [
    ".com.apple.mobile_container_manager.metadata.plist", "Info.plist",
  ]

  /// Creates a directory with an empty file at each path.
  package static func makeTree(of paths: [ByteString], at root: ByteString) throws {
    let slash = UInt8(ascii: "/")
    var directories: [ByteString: [ByteString]] = [:]
    for path in paths {
      let end = path.bytes.lastIndex(of: slash) ?? path.bytes.startIndex
      let name = path.bytes[end...].drop { $0 == slash }
      directories[ByteString(path.bytes[..<end]), default: []].append(ByteString(name))
    }
    for (path, names) in directories {
      let directory = try Directory.make(path: root.appending(path))
      for name in names { try directory.create(name).close() }
    }
  }

  /// The first field of a line of comma-separated values, quoted if it has a comma.
  private static func firstField(of line: String) -> String {
    guard line.utf8.first == UInt8(ascii: "\"") else {
      return line.components(separatedBy: ",")[0]
    }
    let quoted = line.components(separatedBy: "\",")[0].dropFirst()
    return quoted.replacingOccurrences(of: "\"\"", with: "\"")
  }
}
