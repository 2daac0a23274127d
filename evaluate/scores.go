package evaluate

// Scores returns the table of scores, in the order of tables and pages.
func Scores() []Score {
	return []Score{
		accuracyScore, likelihoodScore, brierScore, eceScore, eceEqualMassScore, scaledLikelihoodScore, scaledECEScore, aurcScore,
		balancedScore, confidenceScore, confidenceOutScore,
		aurocScore, fpr95Score, auprOutScore, auprInScore,
		setCoverageScore, worstCoverageScore, setSizeScore, inDistributionScore, inDistributionOutScore,
	}
}
