internal import BuiltinPolicies
internal import PolicyEngine
internal import SandboxModel
internal import SystemIO

/// The policy files: built in, of the system, of the user, and of the command line.
enum PolicyFiles {
  /// Returns a library of all policies. `extra` are files named on the command line; `drafts`
  /// replace the policies of their names while they are checked.
  static func library(extra: [ByteString], drafts: [ByteString] = []) throws -> PolicyLibrary {
    PolicyLibrary(
      builtin + (try others(extra)),
      replacements: try drafts.map { try file($0, .commandLine) })
  }

  /// Returns a library of the policies that a policy needs, selected by name or by layout. If there
  /// are only built-in policies, only those that it extends are read: to read all of them takes an
  /// eighth of the time of a small backup.
  static func library(policy: String?, layout: Layout, extra: [ByteString]) throws -> PolicyLibrary
  {
    let others = try others(extra)
    let needed = BuiltinPolicies.files(policy: policy, layout: layout.rawValue)
    return PolicyLibrary(others.isEmpty && !needed.isEmpty ? sources(needed) : builtin + others)
  }

  /// The built-in policies.
  static var builtin: [PolicySource] { sources(BuiltinPolicies.files) }

  private static func sources(_ files: [BuiltinPolicies.File]) -> [PolicySource] {
    files.map { PolicySource(name: "builtin:\($0.name)", bytes: $0.bytes, origin: .builtin) }
  }

  private static func others(_ extra: [ByteString]) throws -> [PolicySource] {
    var sources = try directory("/etc/sandboxctl/policies", .system)
    if let config = Host.configurationDirectory {
      sources += try directory(config.appending("sandboxctl/policies"), .user)
    }
    return sources + (try extra.map { try file($0, .commandLine) })
  }

  /// Reads one file. If it exceeds the maximum size, one byte more than that is returned.
  static func file(_ path: ByteString, _ origin: PolicySource.Origin) throws -> PolicySource {
    let file = try Descriptor.open(path: path)
    let limit = PolicySource.maximumSize
    let bytes = try file.readAll(limit: limit) ?? file.read(count: limit + 1, at: 0)
    return PolicySource(name: path.description, bytes: bytes, origin: origin)
  }

  private static func directory(_ path: ByteString, _ origin: PolicySource.Origin) throws
    -> [PolicySource]
  {
    let directory: Directory
    do throws(SystemError) {
      directory = try Directory.open(path: path)
    } catch {
      if error.isMissing { return [] }
      throw error
    }
    return try directory.names().filter { $0.description.hasSuffix(".yaml") }
      .map { try file(path.appending($0), origin) }
  }
}
