internal import BuiltinPolicies
internal import InterApp

extension TypeTable {
  /// Reads the types of the system that come with the program.
  static func ofTheSystem() throws -> TypeTable {
    try TypeTable(reading: BuiltinPolicies.interAppTypes, name: "interapp/types.yaml")
  }
}
