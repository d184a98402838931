internal import BuiltinPolicies
internal import Migration
internal import PolicyEngine
internal import SystemIO

/// The migration tables: built in, of the system, and of the user, in the directory `migrations`
/// next to the policies.
enum MigrationFiles {
  /// Returns a library of all tables.
  static func library() throws -> MigrationLibrary {
    var sources = BuiltinPolicies.migrations.map {
      PolicySource(name: "builtin:\($0.name)", bytes: $0.bytes, origin: .builtin)
    }
    sources += try PolicyFiles.directory("/etc/sandboxctl/policies/migrations", .system)
    if let config = Host.configurationDirectory {
      sources += try PolicyFiles.directory(
        config.appending("sandboxctl/policies/migrations"), .user)
    }
    return MigrationLibrary(sources)
  }
}
