internal import BuiltinPolicies
internal import PolicyEngine
internal import SystemIO

/// The policy files: those in the program, the machine's, the user's, and those of the command line.
enum PolicyFiles {
  /// All of them; `extra` are the files named on the command line, `drafts` those that stand in for
  /// policies of their names while they are checked.
  static func library(extra: [String], drafts: [String] = []) throws -> PolicyLibrary {
    var sources = builtin
    sources += try folder("/etc/sandboxctl/policies", .system)
    if let config = Host.configurationFolder {
      sources += try folder(config.appending("sandboxctl/policies"), .user)
    }
    sources += try extra.map { try file(ByteString($0), .commandLine) }
    return PolicyLibrary(
      sources, replacements: try drafts.map { try file(ByteString($0), .commandLine) })
  }

  /// Those in the program.
  static var builtin: [PolicySource] {
    BuiltinPolicies.files.map {
      PolicySource(name: "builtin:\($0.name)", bytes: $0.bytes, origin: .builtin)
    }
  }

  /// Reads one file; of a larger one than a policy may be only so much that this is seen.
  static func file(_ path: ByteString, _ origin: PolicyOrigin) throws -> PolicySource {
    let file = try Descriptor.open(path: path)
    let limit = PolicySource.maximumSize
    let bytes = try file.readAll(limit: limit) ?? file.read(count: limit + 1, at: 0)
    return PolicySource(name: path.description, bytes: bytes, origin: origin)
  }

  private static func folder(_ path: ByteString, _ origin: PolicyOrigin) throws -> [PolicySource] {
    let folder: Folder
    do throws(SystemError) {
      folder = try Folder.open(path: path)
    } catch {
      if error.isMissing { return [] }
      throw error
    }
    return try folder.names().filter { $0.description.hasSuffix(".yaml") }
      .map { try file(path.appending($0), origin) }
  }
}
